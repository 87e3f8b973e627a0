#pragma once
// Facts about a Loop before it runs, and about Loop and Scan alike.

#include "op/axes.h"
#include "op/loop_view.h"

namespace treadle {

// Whether the body's condition is always true, given that it was true when the loop began: it is a constant, the
// incoming condition, or made of these by And, Or and If. The number of iterations is then M.
bool condition_stays_true(const LoopView& loop);

// OpDef::axes of Loop and Scan: an axis other than that of the iterations, followed through the body, where states must
// keep it.
Status loop_axes(AxisContext& c);

}  // namespace treadle
