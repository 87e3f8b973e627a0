#pragma once
// What can be told about a Loop before it runs.

#include "op/loop_view.h"

namespace treadle {

// Whether the body's condition stays true whatever happens, given that it was true when the loop was entered: it is a
// constant, or the condition that came in. Then the trip count is M.
bool condition_stays_true(const LoopView& loop);

}  // namespace treadle
