#pragma once
// Writing files as a whole.

#include <string>
#include <string_view>

#include "base/status.h"

namespace treadle {

// Errors: kInvalidArgument with the system's reason.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace treadle
