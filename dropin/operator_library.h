// Libraries of operators made for onnxruntime, for programs that use treadle's own interface.
#pragma once

#include "treadle/treadle.h"

namespace treadle::dropin {

// Adds the operators of the library to sessions with these options. The library stays open as long as the process.
// Returns NULL, or an error: of opening the library, or from the library itself.
treadle_status* add_operator_library(treadle_options* options, const char* path) noexcept;

}  // namespace treadle::dropin
