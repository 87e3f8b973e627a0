#pragma once
// The folder of the project's files, for tests that read cases from the source tree.

#include <string_view>

namespace treadle {

std::string_view source_dir();  // absolute, without a slash at the end

}  // namespace treadle
