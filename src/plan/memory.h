#pragma once
// Planned memory. A slot is live from the first to the last instruction that names it. A slot that is live at the begin
// of a loop is live until the end of that loop. Memory that a kernel keeps from run to run is live all the time. Slots
// get offsets in one arena.

#include "plan/program.h"

namespace treadle::plan {

void place_in_arena(Program& program);

}  // namespace treadle::plan
