#pragma once
// What a profile (run/profile.h) says to people: the times of nodes (report/node_times.h), the iterations of loops, and
// the trace of one run.

#include <string>

#include "report/node_times.h"

namespace treadle::report {

std::string to_text(const run::Profile& profile);
std::string to_json(const run::Profile& profile);
// Chrome's trace events, which Perfetto shows: loops hold iterations, iterations hold nodes.
std::string to_trace(const run::Profile& profile);

}  // namespace treadle::report
