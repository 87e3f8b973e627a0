#pragma once
// Loop states to which every iteration appends (a cache of keys and values). The memory of such a state has spare room
// along the grown axis, even if that is not the outermost one, so that an iteration only writes the new elements. Rows
// are then farther apart than in row-major order, so inside the loop only operators that accept any strides may read
// the state and its successor. A loop may append to picked rows of the state (PickedConcat) if no other node reads the
// old state. If a product reads the grown axis as the columns of its right-hand side (keys that the product
// transposes), the grown axis becomes the innermost one in memory, and no iteration transposes older elements.

#include "plan/program.h"

namespace treadle::plan {

// Sets DynamicNode::growth and LoopState::grows.
void find_growing(Program& program);

}  // namespace treadle::plan
