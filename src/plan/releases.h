#pragma once
// Which instruction gives up which handles.

#include "plan/program.h"

namespace treadle::plan {

// After lifetimes are known: every handle is listed by the first instruction at or after its last use that gives
// handles up (a dynamic node, the end of a loop). What was there before a branch is kept until behind it, so that it
// does not depend on the side taken. What a body makes is listed there as well as by the end of the outermost loop: a
// run keeps small things from trip to trip, to write into their memory again.
void place_releases(Program& program);

}  // namespace treadle::plan
