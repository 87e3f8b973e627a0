#pragma once
// A run that is looked into: the values of a model over iterations, and where NaN comes from. The model runs as it is
// written, interpreted (Session::observed), so its results may differ in the last digits from those of a usual run.

#include "report/findings.h"
#include "report/series.h"
#include "session/session.h"

namespace treadle::report {

struct TraceOptions : SeriesOptions {
  std::vector<std::string> watch;  // names (report/iteration_choice.h, session/origins.h); empty: all values
  std::string find;                // what to find (report/sought.h); empty: nothing
  // A folder for the node that made what was found first (report/lone_node.h); empty: it is not saved.
  std::string save;
};

struct Trace {
  std::shared_ptr<const Session> model;  // to which the values refer
  std::vector<ValueSeries> values;
  int64_t every = 1;  // samples are of every so many iterations: more than was asked for if they did not fit
  std::optional<Findings> found;
};

// Runs the model for `feeds`, and gives `results` as Session::run does. `out` is filled also if the run fails. Errors:
// kInvalidArgument for unknown names (with the nearest) and for a trace that does not fit `memory`; those of runs.
Status trace(const Session& session, std::span<const Feed> feeds, std::vector<AnyValue>& results,
             const TraceOptions& options, const RunOptions& run, Trace& out);

std::string to_text(const Trace& trace);
std::string to_json(const Trace& trace);

}  // namespace treadle::report
