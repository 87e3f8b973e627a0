#pragma once
// The walk over elementwise work with reductions.

#include "jit/nest.h"

namespace treadle::jit {

// Loops over the lines, then one dimension for each axis of a line that is longer than 1; nullopt if operands have no
// constant strides along these axes.
std::optional<Nest> nest_of_lines(const plan::ElementwiseCode& code);

// The number of neighbouring lines, out of `along`, that are reduced at once.
int64_t rows_of_tile(const plan::Lines& lines, int64_t along, const Chunks& chunks);

// Whether there is one result.
inline bool is_single(const plan::Lines& lines) {
  return lines.outer == 1 && lines.inner == 1;
}

}  // namespace treadle::jit
