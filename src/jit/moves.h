#pragma once
// Moves of elements: permutations of what is in registers, or whole vectors from memory that stay as they are.

#include "jit/places.h"

namespace treadle::jit {

// Whether every vector of the results is a run of neighbours in one of the operands, and there are not many.
bool moves_vectors(const plan::MoveCode& code, const Chunks& chunks);

}  // namespace treadle::jit
