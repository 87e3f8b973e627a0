#pragma once
// What a loop scans and a kernel in front of it makes, block by block of its trips.
//
//   G = X W (all trips), loop over the rows of G     ->     per block: G = X W (its rows), trips over the rows of G
//
// For a long sequence G is larger than the caches, and often the largest value of a program. In blocks it stays in the
// second-level cache, and takes as much memory as one block needs.

#include "plan/program.h"

namespace treadle::plan {

// For the outermost loops of a program whose instructions are complete. Kernels that give rows for rows, cannot fail,
// and serve one loop alone become its Strips; their instructions stay as kInStrips, which do nothing. Slots for
// scratch are added. Results keep their bits.
void strip_mine(Program& program);

}  // namespace treadle::plan
