#pragma once
// Moves of elements: permutations of elements in registers, or copies of whole vectors from memory.

#include "jit/locations.h"

namespace treadle::jit {

// Whether every vector of the results is a run of neighbours in one of the operands, and there are not many.
bool moves_vectors(const plan::MoveCode& code, const Chunks& chunks);
// Whether all of it fits a few vectors.
bool fits_vectors(const plan::MoveCode& code, const Chunks& chunks);
// Whether it is a few copies or fills of neighbours, which loops do as fast as a kernel.
bool moves_regions(const plan::MoveCode& code);

}  // namespace treadle::jit
