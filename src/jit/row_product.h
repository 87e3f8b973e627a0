#pragma once
// A row times a matrix, c = a B, as recurrences compute it in every iteration. Sums stay in registers while the rows of
// B pass, and so does the result, for the next instruction.

#include "jit/locations.h"

namespace treadle::jit {

// Whether LoopWriter inlines this product of the request. `threads`: the number that a run may use.
bool multiplies_rows(const plan::ProductCode& code, const plan::NativeRequest& request, const Chunks& chunks,
                     int threads);

}  // namespace treadle::jit
