// Which configuration entries a program may set without being told anything. The Python package asks as well.
#pragma once

#include <string_view>

namespace treadle::dropin {

enum class Owner { kSession, kRun };

// Whether treadle does what the entry of a session or of a run asks for, or nothing that a program can see depends on
// it.
bool is_quiet(Owner owner, std::string_view key, std::string_view value);

}  // namespace treadle::dropin
