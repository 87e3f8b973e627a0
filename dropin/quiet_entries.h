// The configuration entries that cause no warning. The Python package uses the same list.
#pragma once

#include <string_view>

namespace treadle::dropin {

enum class Owner { kSession, kRun };

// Whether treadle does what the entry requests, or the entry has no effect that a program can see.
bool is_quiet(Owner owner, std::string_view key, std::string_view value);

}  // namespace treadle::dropin
