#pragma once
// How long what an iteration of a loop computes takes at least.

#include <functional>

#include "op/work.h"
#include "plan/native.h"
#include "plan/program.h"
#include "report/roofline.h"

namespace treadle::report {

// In elementary operations.
double operations_of(const Work& work);

double work_ns(const Roofline& roof, const Work& work);

using treadle::work_of;
Work work_of(const plan::ElementwiseCode& code);

// The longest way from a state of the loop to its own next value: what one iteration makes the next one wait for.
// `node_ns`: how long the work of a node takes.
double carried_ns(const plan::Loop& loop, const Roofline& roof, const std::function<double(const ir::Node&)>& node_ns);

}  // namespace treadle::report
