#pragma once
// Runs the kernels that make a loop's scan inputs strip by strip of its iterations.
//
//   G = X W (all iterations), loop over the rows of G   ->   per strip: G = X W (its rows), iterations over its rows
//
// For a long sequence G is larger than the caches, and often the largest value of a program. In strips it stays in the
// second-level cache, and takes the memory of one strip.

#include "plan/program.h"

namespace treadle::plan {

// For the outermost loops of a complete program. Kernels that make rows from rows, cannot fail, and serve only one loop
// become its Strips. Their instructions become kInStrips, which do nothing. Adds slots for scratch. Results keep their
// bits.
void strip_mine(Program& program);

}  // namespace treadle::plan
