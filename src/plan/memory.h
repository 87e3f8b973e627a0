#pragma once
// Planned memory: each slot of it is live from the first to the last instruction that names it, and what lives into a
// loop lives until its end. Slots get offsets in one arena.

#include "plan/program.h"

namespace treadle::plan {

void place_in_arena(Program& program);

}  // namespace treadle::plan
