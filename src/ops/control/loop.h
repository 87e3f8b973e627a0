#pragma once
// What can be told about a Loop before it runs, and about Loop and Scan alike.

#include "op/axes.h"
#include "op/loop_view.h"

namespace treadle {

// Whether the body's condition stays true whatever happens, given that it was true when the loop was entered: it is a
// constant, or the condition that came in, or made of these by And, Or and If. Then the trip count is M.
bool condition_stays_true(const LoopView& loop);

// OpDef::axes of Loop and Scan: an axis other than that of the trips, through the body, in which states keep it.
Status loop_axes(AxisContext& c);

}  // namespace treadle
