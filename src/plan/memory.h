#pragma once
// Planned memory. A slot is live from the first to the last instruction that names the slot; a slot that is live at the
// begin of a loop is live until the end of that loop, and what a kernel keeps is live all the time. Slots get offsets
// in one arena.

#include "plan/program.h"

namespace treadle::plan {

void place_in_arena(Program& program);

}  // namespace treadle::plan
