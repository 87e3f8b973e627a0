#pragma once
// Decides which instruction releases which handles.

#include "plan/program.h"

namespace treadle::plan {

// Needs lifetimes. Adds every handle to the list of the first instruction at or after its last use that can release
// handles (a dynamic node, the end of a loop). A value from before a branch is kept until after the branch, so that its
// lifetime does not depend on the side taken. A value made in a body is also released by the end of the outermost loop,
// because a run keeps small values from iteration to iteration, to write into their memory again.
void place_releases(Program& program);

}  // namespace treadle::plan
