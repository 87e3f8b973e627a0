#pragma once
// Statistics of values as text and JSON.

#include <string>

#include "kernels/statistics.h"

namespace treadle::report {

// "-0.35 to 1.9, 3 nan": the range of the numbers, infinities included, and counts that are not 0.
std::string to_text(const kernels::Statistics& statistics);
std::string to_json(const kernels::Statistics& statistics);
// A number, or a text for one that JSON does not have: "nan", "inf", "-inf".
std::string number_json(double number);

}  // namespace treadle::report
