#pragma once
// What the next trip waits for comes last: chains of minima and maxima are put together so that a value that the trip
// before has made passes through one of them instead of all.
//
//   left' = Min(Min(left, up), corner) + cost   becomes   left' = Min(left, Min(up, corner)) + cost
//
// Min and Max may be grouped as one likes: the result is the last NaN if there is one, else the first of the least
// (kernels/elementwise_functions.h). Of integers, they may also be taken in any order.

#include "plan/native.h"

namespace treadle::jit {

// `is_late`: by input, whether it comes from the trip before by way of these steps.
plan::ElementwiseCode with_late_last(const plan::ElementwiseCode& code, const std::vector<bool>& is_late);

}  // namespace treadle::jit
