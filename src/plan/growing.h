#pragma once
// Loop states to which every trip appends (a cache of keys and values). The memory of such a state has spare room along
// the grown axis, also where the grown axis is not the outermost one, so that appending writes the new elements only.
// Rows then lie farther apart than in row-major order. So inside the loop, only operators that take any strides may
// read the state and its successor. A loop may append to picked rows of the state (PickedConcat), if nothing else
// reads the state as it was. Where a product reads the grown axis as the columns of its right-hand side (keys
// that the product transposes), the grown axis becomes the innermost one in memory, and no trip transposes older
// elements.

#include "plan/program.h"

namespace treadle::plan {

// Sets DynamicNode::growth and LoopState::grows.
void find_growing(Program& program);

}  // namespace treadle::plan
