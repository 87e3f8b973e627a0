#pragma once
// Formats a profile (run/profile.h) for people: times of nodes (report/node_times.h), iterations of loops, and the
// trace of one run.

#include <string>

#include "report/node_times.h"
#include "report/text_layout.h"

namespace treadle::report {

// The times of nodes, and iterations of loops.
std::string to_text(const run::Profile& profile, const TextOptions& options = {});
// A table by node: the longest time first, and the time of a run last.
std::string table_text(const ProfileTimes& times, const TextOptions& options);
std::string to_json(const run::Profile& profile);
// Trace events in Chrome's format, which Perfetto shows: loops contain iterations, iterations contain nodes.
std::string to_trace(const run::Profile& profile);

}  // namespace treadle::report
