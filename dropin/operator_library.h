// For programs that use treadle's own interface and libraries of operators that were made for onnxruntime.
#pragma once

#include "treadle/treadle.h"

namespace treadle::dropin {

// Sessions with these options have the operators of the library, which stays open as long as the process. NULL, or what
// is wrong with the library, or what the library itself says.
treadle_status* add_operator_library(treadle_options* options, const char* path) noexcept;

}  // namespace treadle::dropin
