// A session looks up the values that a caller gives, finds or makes a plan for them, and runs it.
#include "session/session.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "base/thread_pool.h"
#include "base/thread_scratch.h"
#include "model/export.h"
#include "op/print.h"
#include "run/realtime.h"
#include "session/absent_inputs.h"
#include "session/bound_run.h"
#include "session/graph_dump.h"
#include "session/loaded.h"
#include "session/plain_program.h"
#include "session/plan_cache.h"
#include "session/reference_run.h"
#include "session/written_model.h"

namespace treadle {

using session::Given;
using session::Plan;
using session::Values;

namespace {

// Working memory of a run before it has a context.
struct RunScratch {
  Given given;
  std::vector<AnyValue*> outputs;  // parallel to the graph's outputs; null: not requested

  void clear() {
    given.clear();
    outputs.clear();
  }
};

}  // namespace

struct Session::Impl {
  session::Loaded loaded;
  std::unique_ptr<session::PlanCache> plans;  // null until the model is loaded
  session::RunCounts counts;
  // Sessions of the model without some inputs, by Given::absent, for runs with None for these inputs.
  std::mutex without_inputs_mutex;
  std::map<std::vector<bool>, std::shared_ptr<const Session>> without_inputs;

  // Finds or makes a plan, under the run's limits too. If a plan is made, `since` is set to the time at which the run
  // began.
  Result<const Plan*> plan_for_run(Values values, const RunOptions& run, Limits::Clock::time_point& since);
  // `plan`: null if there is none; then the reference interpreter runs.
  Status run_plan(const Plan* plan, Values values, std::span<AnyValue* const> places, const RunOptions& run,
                  Limits::Clock::time_point since);
  Status run(Values values, std::span<AnyValue* const> places, const RunOptions& run);
  Result<std::shared_ptr<const Session>> session_without(const std::vector<bool>& absent);
  std::mutex observed_mutex;
  std::shared_ptr<const Session> observed;  // null until it is wanted
  Result<std::shared_ptr<const Session>> open_observed();
  // Another session of this model.
  Result<std::shared_ptr<const Session>> open_again(std::unique_ptr<ir::Graph> graph, SessionOptions options) const;
};

Session::Session() : impl_(std::make_unique<Impl>()) {}
Session::~Session() = default;

Result<const Plan*> Session::Impl::plan_for_run(Values values, const RunOptions& run,
                                                Limits::Clock::time_point& since) {
  if (const Plan* plan = plans->find(values)) return plan;
  run.begin_long_work();
  since = Limits::Clock::now();
  run::RunLimits limits;
  limits.begin(run, since);
  const ThreadScope scope(1, limits.stop_check());
  auto plan = plans->find_or_make(values);
  if (plan.ok()) return plan;
  Status status = std::move(plan).status();
  if (Status reached = scope.stopped() ? limits.check() : Status(); !reached.ok()) {
    status = std::move(reached).in(status.place());
  }
  return loaded.in_file(std::move(status));
}

Status Session::Impl::run_plan(const Plan* plan, Values values, std::span<AnyValue* const> places,
                               const RunOptions& run, Limits::Clock::time_point since) {
  if (!plan) return run_reference(loaded, values, places, run);
  if (!plan->is_brief()) run.begin_long_work();
  auto context = plan->take_context();
  Status status = context->run(values, places, run, since);
  counts.last_allocations.store(context->allocations(), std::memory_order_relaxed);
  counts.last_peak.store(static_cast<int64_t>(context->peak_bytes()), std::memory_order_relaxed);
  const bool misplanned = context->misplanned();
  plan->give_back(std::move(context));
  if (misplanned) run.begin_long_work();
  return misplanned ? run_reference(loaded, values, places, run) : loaded.in_file(std::move(status));
}

Status Session::Impl::run(Values values, std::span<AnyValue* const> places, const RunOptions& run) {
  // A brief run does not look at the flag again.
  if (run.is_cancelled()) return error(Code::kCancelled, "the run was cancelled");
  if (loaded.options.tier == Tier::kReference) {
    run.begin_long_work();
    return run_reference(loaded, values, places, run);
  }
  Limits::Clock::time_point since{};
  TREADLE_ASSIGN(const Plan* const plan, plan_for_run(values, run, since));
  return run_plan(plan, values, places, run, since);
}

template <class Load>
Result<std::unique_ptr<Session>> Session::opened(const SessionOptions& options, Load&& load) {
  std::unique_ptr<Session> session(new Session);
  session->impl_->loaded.options = options;
  TREADLE_TRY(load(session->impl_->loaded));
  session->impl_->plans = std::make_unique<session::PlanCache>(session->impl_->loaded);
  return session;
}

Result<std::unique_ptr<Session>> Session::open(const std::string& path, const SessionOptions& options) {
  return opened(options, [&](session::Loaded& loaded) { return load_file(path, loaded); });
}

Result<std::unique_ptr<Session>> Session::from_bytes(std::span<const std::byte> bytes, const SessionOptions& options,
                                                     const std::string& folder) {
  return opened(options, [&](session::Loaded& loaded) { return load_bytes(bytes, folder, loaded); });
}

Result<std::unique_ptr<Session>> Session::from_graph(std::unique_ptr<ir::Graph> graph, const SessionOptions& options) {
  return opened(options, [&](session::Loaded& loaded) { return load_graph(std::move(graph), loaded); });
}

void Session::set_threads(int threads) const {
  impl_->loaded.threads = std::clamp(threads, 1, kMaxThreads);
}

Result<std::shared_ptr<const Session>> Session::Impl::open_again(std::unique_ptr<ir::Graph> graph,
                                                                 SessionOptions options) const {
  options.threads = loaded.threads;
  TREADLE_ASSIGN(auto made, opened(options, [&](session::Loaded& again) {
                   again.path = loaded.path;
                   again.text = loaded.text;
                   return load_graph(std::move(graph), again);
                 }));
  return std::shared_ptr<const Session>(std::move(made));
}

Result<std::shared_ptr<const Session>> Session::Impl::session_without(const std::vector<bool>& absent) {
  constexpr size_t kMostKept = 16;
  const std::lock_guard lock(without_inputs_mutex);
  if (const auto it = without_inputs.find(absent); it != without_inputs.end()) return it->second;
  TREADLE_ASSIGN(auto made, open_again(session::without_inputs(*loaded.graph, absent), loaded.options));
  if (without_inputs.size() >= kMostKept) without_inputs.erase(without_inputs.begin());
  return without_inputs[absent] = std::move(made);
}

std::span<const IoInfo> Session::inputs() const {
  return impl_->loaded.inputs.required();
}
std::span<const IoInfo> Session::overridable() const {
  return impl_->loaded.inputs.overridable();
}
std::span<const IoInfo> Session::outputs() const {
  return impl_->loaded.outputs;
}
const ir::Metadata& Session::metadata() const {
  return impl_->loaded.graph->metadata;
}
const session::Fingerprint& Session::fingerprint() const {
  return impl_->loaded.fingerprint;
}
const ir::Graph& Session::graph() const {
  return *impl_->loaded.graph;
}
std::span<const std::string> Session::remarks() const {
  return impl_->loaded.warnings;
}
std::span<const std::string> Session::model_warnings() const {
  return impl_->loaded.model_warnings;
}
const SessionOptions& Session::options() const {
  return impl_->loaded.options;
}
Result<std::shared_ptr<const Session>> Session::observed(std::span<const Feed> feeds) const {
  TREADLE_ASSIGN(const std::shared_ptr<const Session> whole, impl_->open_observed());
  Given given;
  TREADLE_TRY(whole->impl_->loaded.inputs.fill(feeds, given));
  if (given.absent.empty()) return whole;
  return whole->impl_->session_without(given.absent);
}

Result<std::shared_ptr<const Session>> Session::Impl::open_observed() {
  const std::lock_guard lock(observed_mutex);
  if (!observed) {
    SessionOptions options = loaded.options;
    options.tier = Tier::kProgram;
    options.jit = Jit::kOff;
    options.optimize = options.associative_math = false;
    options.observed = true;
    options.exact_plans = std::numeric_limits<int>::max();  // of exact sizes each instruction says most
    options.dump.clear();
    options.dumped.reset();
    TREADLE_ASSIGN(observed, open_again(loaded.graph->clone(), std::move(options)));
  }
  return observed;
}

const session::ModelValues& Session::model_values() const {
  return *impl_->loaded.values;
}

const opt::Remarks& Session::load_remarks() const {
  return impl_->loaded.remarks;
}
const run::NativeCache& Session::native_cache() const {
  return *impl_->loaded.native_cache;
}

Status Session::run(std::span<const Feed> feeds, std::span<const size_t> outputs, std::span<AnyValue* const> results,
                    const RunOptions& options) const {
  ThreadScratch<RunScratch> scratch;
  TREADLE_TRY(impl_->loaded.inputs.fill(feeds, scratch->given));
  if (!scratch->given.absent.empty()) {
    const std::vector<bool> absent = scratch->given.absent;
    return run_without(absent, feeds, outputs, results, options);
  }
  const Values values = scratch->given.values;
  const size_t count = impl_->loaded.outputs.size();
  const auto output = [&](size_t i) { return outputs.empty() ? i : outputs[i]; };
  std::vector<AnyValue*>& places = scratch->outputs;
  places.assign(count, nullptr);
  for (size_t i = 0; i < results.size(); ++i) {
    if (output(i) >= count) return error(Code::kInvalidArgument, "output {} of {} was asked for", output(i), count);
    if (!places[output(i)]) places[output(i)] = results[i];
  }
  impl_->counts.runs.fetch_add(1, std::memory_order_relaxed);
  TREADLE_TRY(impl_->loaded.files.checked(impl_->run(values, places, options)));
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] != places[output(i)]) *results[i] = *places[output(i)];  // requested twice
  }
  return {};
}

Status Session::run_without(const std::vector<bool>& absent, std::span<const Feed> feeds,
                            std::span<const size_t> outputs, std::span<AnyValue* const> results,
                            const RunOptions& options) const {
  TREADLE_ASSIGN(const auto session, impl_->session_without(absent));
  std::vector<Feed> given;
  for (const Feed& feed : feeds) {
    if (!feed.value->is_none()) given.push_back(feed);
  }
  impl_->counts.runs.fetch_add(1, std::memory_order_relaxed);
  return session->run(given, outputs, results, options);
}

Status Session::run(std::span<const Feed> feeds, std::span<const size_t> outputs, std::vector<AnyValue>& results,
                    const RunOptions& options) const {
  results.resize(outputs.empty() ? impl_->loaded.outputs.size() : outputs.size());
  std::vector<AnyValue*> places;
  for (AnyValue& result : results) places.push_back(&result);
  return run(feeds, outputs, places, options);
}

Status Session::run(RepeatedRun& run, const RunOptions& options) const {
  const session::Inputs& inputs = impl_->loaded.inputs;
  if (options.is_cancelled()) return error(Code::kCancelled, "the run was cancelled");
  impl_->counts.runs.fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    if (!run.inputs[i]) run.inputs[i] = &inputs.default_of(i);
  }
  Limits::Clock::time_point since{};
  // Values that the plan serves have types that were checked when it was made.
  if (!run.plan || !run.plan->serves(run.inputs)) {
    for (size_t i = 0; i < run.inputs.size(); ++i) TREADLE_TRY(inputs.check(i, *run.inputs[i]));
    auto found = impl_->plan_for_run(run.inputs, options, since);
    if (!found.ok()) return impl_->loaded.files.checked(std::move(found).status());
    run.plan = *found;
  }
  return impl_->loaded.files.checked(impl_->run_plan(run.plan, run.inputs, run.outputs, options, since));
}

Result<std::unique_ptr<session::BoundRun>> Session::bind(const RepeatedRun& run, std::span<const uint8_t> varies,
                                                         const RunOptions& options, std::string& why) const {
  why = session::BoundRun::refusal(run.plan, varies);
  if (!why.empty()) return std::unique_ptr<session::BoundRun>();
  return session::BoundRun::make(*run.plan, impl_->loaded, impl_->counts, options);
}

SessionCounters Session::counters() const {
  int64_t compilations = 0, cache_loads = 0;
  for (const Plan* plan = impl_->plans->newest(); plan; plan = plan->next()) {
    if (!plan->planned().native) continue;
    compilations += plan->planned().native->compilations();
    cache_loads += plan->planned().native->cache_loads();
  }
  return {impl_->plans->size(),
          impl_->counts.runs.load(),
          impl_->counts.last_allocations.load(),
          impl_->counts.last_peak.load(),
          compilations,
          cache_loads};
}

void Session::wait_compiled() const {
  for (const Plan* plan = impl_->plans->newest(); plan; plan = plan->next()) {
    if (plan->planned().native) return plan->planned().native->wait();
  }
}

void Session::compile() const {
  for (const Plan* plan = impl_->plans->newest(); plan; plan = plan->next()) {
    if (plan->planned().native) plan->planned().native->make_all();
  }
}

Result<const session::Planned*> Session::planned(std::span<const Feed> feeds) const {
  const Plan* plan = impl_->plans->typical();
  if (!feeds.empty() || (!plan && impl_->loaded.inputs.size() == 0)) {
    Given given;
    TREADLE_TRY(impl_->loaded.inputs.fill(feeds, given));
    TREADLE_TRY(impl_->loaded.inputs.require_all(given));
    TREADLE_ASSIGN(plan, impl_->plans->find_or_make(given.values));
  }
  return plan ? &plan->planned() : nullptr;
}

std::string Session::breaks_realtime(const session::Planned* plan, bool bound) const {
  if (options().tier == Tier::kReference) return "the reference interpreter asks for memory at each node";
  if (!plan) return "no plan serves these sizes";
  std::string why = run::breaks_realtime(*plan->program, plan->native.get());
  if (why.empty() && !bound && !impl_->loaded.files.is_empty()) {
    why = "each run asks the system whether a mapped file of weights has changed: set weight_files to copy, or bind";
  }
  return why;
}

Result<session::Planned> Session::plan_model() const {
  return impl_->plans->plan_model();
}

Result<std::shared_ptr<const plan::Program>> Session::plain_program(const session::PlainSizes& known) const {
  auto program = session::plain_program(impl_->loaded, known);
  if (!program.ok()) return impl_->loaded.in_file(std::move(program).status());
  return program;
}

Result<std::string> Session::dump_graph() const {
  const std::string& what = impl_->loaded.options.dump;
  if (what.empty()) return print(*impl_->loaded.graph);
  std::string text = impl_->loaded.options.dumped->text();
  if (!text.empty()) return text;
  return error(
      Code::kInvalidArgument,
      "dump = {}: nothing that it asks for has run, since nothing is planned yet or the options do not want it", what);
}

Result<std::string> Session::optimized_model() const {
  const session::Loaded& loaded = impl_->loaded;
  if (!loaded.options.optimize) return model::export_model(*loaded.graph);
  // Errors that depend on sizes of a run are left for runs to report.
  const auto written = session::written_model(*loaded.graph, loaded.inputs);
  return model::export_model(written.ok() ? **written : *loaded.graph);
}

Result<std::string> Session::dump_plan(std::span<const Feed> feeds) const {
  Given given;
  TREADLE_TRY(impl_->loaded.inputs.fill(feeds, given));
  TREADLE_TRY(impl_->loaded.inputs.require_all(given));
  TREADLE_ASSIGN(const Plan* plan, impl_->plans->find_or_make(given.values));
  if (!plan) return error(Code::kInvalidArgument, "no plan serves these sizes: nodes refuse them, and so many others");
  return plan::print(*plan->planned().program);
}

}  // namespace treadle
