#pragma once
// A row times a matrix, c = a B: what recurrences do in every step. Sums stay in registers while the rows of B pass by;
// the result stays there for what follows.

#include "jit/locations.h"

namespace treadle::jit {

// Whether LoopWriter writes the product, one of the request's, out this way. `threads`: that a run may use.
bool multiplies_rows(const plan::ProductCode& code, const plan::NativeRequest& request, const Chunks& chunks,
                     int threads);

}  // namespace treadle::jit
