#pragma once
// The first lines of an explanation: the time of a run, the loops and nodes that take it, and what would help.

#include <string>

#include "report/explain.h"

namespace treadle::report {

std::string head_text(const Explanation& explanation, const TextOptions& options);

}  // namespace treadle::report
