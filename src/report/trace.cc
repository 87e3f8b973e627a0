#include "report/trace.h"

#include <algorithm>

#include "report/lone_node.h"
#include "session/origins.h"
#include "session/plan_cache.h"

namespace treadle::report {

namespace {

// All values of the model that have a name and elements.
std::vector<SeriesRequest> all_values(const ir::Graph& model) {
  std::vector<SeriesRequest> wanted;
  for (const ir::Value* value : model.values()) {
    if (!value->name.empty() && !value->is_constant()) wanted.push_back({value->origin, {}});
  }
  return wanted;
}

Result<std::vector<SeriesRequest>> requests(const session::ModelValues& model, const TraceOptions& options,
                                            bool is_rewritten) {
  const bool watches = options.statistics || options.seen;
  if (options.watch.empty()) return watches ? all_values(model.graph()) : std::vector<SeriesRequest>();
  std::vector<SeriesRequest> wanted;
  for (const std::string& text : options.watch) {
    auto origins = model.named(text, is_rewritten);
    WatchedName watched;
    if (!origins.ok()) {
      watched = watched_name(text);
      origins = model.named(watched.name, is_rewritten);
    }
    if (!origins.ok()) return std::move(origins).status();
    for (const uint32_t origin : *origins) wanted.push_back({origin, watched.iterations});
  }
  return wanted;
}

std::string megabytes(double bytes) {
  return bytes < 1e9 ? fmt::format("{:.3g} MB", bytes / 1e6) : fmt::format("{:.3g} GB", bytes / 1e9);
}

// Whether the samples fit, as far as planning knows the number of iterations.
Status check_memory(const SeriesRecorder& recorder, const TraceOptions& options, size_t values) {
  if (!options.statistics) return {};
  bool unknown = false;
  const double bytes = recorder.expected_bytes(unknown);
  const auto limit = static_cast<double>(options.memory);
  if (bytes <= limit) return {};
  const auto every = static_cast<int64_t>(bytes / limit * static_cast<double>(options.every)) + 1;
  return error(Code::kInvalidArgument,
               "this trace takes {}{} for {} values in all iterations, more than memory = {}: watch fewer values, "
               "every = {} or more, or memory = {:.0f}",
               unknown ? "at least " : "", megabytes(bytes), values, megabytes(limit), every, bytes + 1);
}

// Without those that are None: the session has no such inputs (Session::observed), or has a default for them.
std::vector<Feed> given(std::span<const Feed> feeds) {
  std::vector<Feed> kept;
  for (const Feed& feed : feeds) {
    if (!feed.value->is_none()) kept.push_back(feed);
  }
  return kept;
}

}  // namespace

Status trace(const Session& session, std::span<const Feed> all_feeds, std::vector<AnyValue>& results,
             const TraceOptions& options, const RunOptions& run, Trace& out) {
  if (options.every < 1) return error(Code::kInvalidArgument, "every = {}: expected 1 or more", options.every);
  if (!options.save.empty() && options.find.empty()) {
    return error(Code::kInvalidArgument, "save = '{}': only what `find` finds can be saved", options.save);
  }
  TREADLE_ASSIGN(const auto observed, session.observed(all_feeds));
  const std::vector<Feed> feeds = given(all_feeds);
  out.model = observed;
  const session::ModelValues& model = observed->model_values();
  TREADLE_ASSIGN(const std::vector<SeriesRequest> wanted, requests(model, options, session.options().optimize));
  std::optional<Finder> finder;
  if (!options.find.empty()) {
    TREADLE_ASSIGN(Sought sought, Sought::parse(options.find));
    finder.emplace(std::move(sought));
  }
  TREADLE_ASSIGN(const session::Planned* const planned, observed->planned(feeds));
  if (!planned) return error(Code::kInvalidArgument, "the sizes of these inputs cannot be planned, only interpreted");
  SeriesRecorder recorder(model, *planned->program, planned->same, wanted, options);
  TREADLE_TRY(check_memory(recorder, options, wanted.size()));
  std::vector<Listener*> listeners;
  if (!wanted.empty()) listeners.push_back(&recorder);
  if (finder) listeners.push_back(&*finder);
  Watcher watcher(std::move(listeners));
  RunOptions watched = run;
  watched.observer = &watcher;
  watched.profile = nullptr;
  Status status = observed->run(feeds, {}, results, watched);
  out.every = recorder.every();
  out.values = recorder.take();
  if (!watcher.has_begun()) return status;
  if (finder) {
    std::vector<std::string> outputs;
    for (const IoInfo& output : session.outputs()) outputs.push_back(output.name);
    out.found = findings_of(*finder, watcher, model, outputs);
    if (!options.save.empty() && out.found->any()) {
      out.found->saved = save_node({*observed, feeds, run, session.options().optimize}, finder->sought(),
                                   out.found->places[0], options.save);
    }
  }
  if (status.ok() && !watcher.is_complete()) {
    return error(Code::kNotImplemented,
                 "a loop without iterations gave sizes that only the reference interpreter runs: its values cannot be "
                 "looked at");
  }
  return status;
}

}  // namespace treadle::report
