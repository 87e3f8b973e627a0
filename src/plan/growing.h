#pragma once
// Loop states that every trip appends to (a cache of keys and values): their memory has room along the grown axis, also
// where that is not the outermost one, so that appending writes the new elements and nothing else. Rows are then
// farther apart than in row-major order, which only those see who take any strides; so the state and its successor must
// be read by nobody else inside the loop. Where a product reads the grown axis as the columns of its right-hand side
// (keys that it transposes), that axis is made the innermost one in memory, and no trip has to transpose what was there
// before.

#include "plan/program.h"

namespace treadle::plan {

// Sets DynamicNode::growth and LoopState::grows.
void find_growing(Program& program);

}  // namespace treadle::plan
