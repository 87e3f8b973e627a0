#pragma once
// Moves of elements: permutations of elements in registers, or copies of whole vectors from memory.

#include "jit/locations.h"

namespace treadle::jit {

// Whether every vector of the results is contiguous in one of the operands, and there are few vectors.
bool moves_vectors(const plan::MoveCode& code, const Chunks& chunks);
// Whether all elements fit a few vectors.
bool fits_vectors(const plan::MoveCode& code, const Chunks& chunks);
// Whether the move is a few copies or fills of contiguous elements; loops do these as fast as a kernel.
bool moves_regions(const plan::MoveCode& code);

}  // namespace treadle::jit
