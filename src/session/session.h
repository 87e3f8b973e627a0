#pragma once
// A loaded model, ready to run. It does not change for its users, and any number of threads may share it.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "session/inputs.h"
#include "session/options.h"

namespace treadle {

namespace opt {
class Remarks;
}
namespace plan {
struct Program;
}
namespace run {
class NativeCache;
}
namespace session {
class BoundRun;
class ModelValues;
class Plan;
struct Fingerprint;
struct PlainSizes;
struct Planned;
}  // namespace session

// For successive runs of one caller: names have been looked up. Not for the reference interpreter.
struct RepeatedRun {
  std::vector<const AnyValue*> inputs;  // parallel to the graph's inputs; tensors only. Null: the default
  std::vector<AnyValue*> outputs;       // parallel to Session::outputs(), written as by Session::run. Null: not wanted
  const session::Plan* plan = nullptr;  // the plan of the last run, which is tried first
};

// Counters for tests and profilers, since the session was opened.
struct SessionCounters {
  int64_t plans = 0;
  int64_t runs = 0;
  int64_t allocations_last_run = 0;  // by the engine, without outputs
  int64_t peak_bytes_last_run = 0;   // the arena and the peak of tensors of run-time size
  int64_t compilations = 0;          // loops that have become native code
  int64_t cache_loads = 0;           // those whose code came from the cache
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const std::string& path, const SessionOptions& options = {});
  // `folder`: the folder of external data (empty: external data is refused). The bytes are copied.
  static Result<std::unique_ptr<Session>> from_bytes(std::span<const std::byte> bytes,
                                                     const SessionOptions& options = {},
                                                     const std::string& folder = {});
  // A graph that has been read already. Its constants and the names in it stay in use.
  static Result<std::unique_ptr<Session>> from_graph(std::unique_ptr<ir::Graph> graph,
                                                     const SessionOptions& options = {});
  ~Session();

  // Replaces the number of threads of the options; to be called before the first run.
  void set_threads(int threads) const;

  std::span<const IoInfo> inputs() const;  // inputs that a caller has to give, followed by initialisers that may be
                                           // overridden
  std::span<const IoInfo> overridable() const;
  std::span<const IoInfo> outputs() const;
  const ir::Metadata& metadata() const;
  const SessionOptions& options() const;
  // Options without effect on this model, each as a sentence.
  std::span<const std::string> remarks() const;
  std::span<const std::string> model_warnings() const;
  const ir::Graph& graph() const;                   // as imported, types inferred
  const session::Fingerprint& fingerprint() const;  // of the graph as it was read

  // Runs the model. `outputs`: indices into outputs(); empty means all. `results`: places for their values. A tensor
  // there of the right type and sizes is overwritten in place, any other value is replaced. No place may be a feed.
  // Errors: kInvalidArgument with the input's name, what was expected and what was found; those of the model's nodes
  // and of limits.
  Status run(std::span<const Feed> feeds, std::span<const size_t> outputs, std::span<AnyValue* const> results,
             const RunOptions& options = {}) const;
  // The same, with one result per requested output.
  Status run(std::span<const Feed> feeds, std::span<const size_t> outputs, std::vector<AnyValue>& results,
             const RunOptions& options = {}) const;

  Status run(RepeatedRun& run, const RunOptions& options) const;

  // Binds the arguments of a run that has been made with these inputs (session/bound_run.h). `varies`: parallel to its
  // inputs, whether later runs may find other contents there. Null, with the reason in `why`: such runs cannot be
  // bound. Errors: kLimit.
  Result<std::unique_ptr<session::BoundRun>> bind(const RepeatedRun& run, std::span<const uint8_t> varies,
                                                  const RunOptions& options, std::string& why) const;

  SessionCounters counters() const;
  // Blocks until the compile queue is empty.
  void wait_compiled() const;
  // Compiles all loops of the plans made so far, before it returns. Does nothing if `jit` is off.
  void compile() const;
  // The plan for these feeds, or the newest one if there are no feeds (session/plan_cache.h). Null: there is no plan,
  // as nothing has run and the model has inputs. The plan lives as long as the session. Errors: those of planning.
  Result<const session::Planned*> planned(std::span<const Feed> feeds = {}) const;
  // Why runs of this plan (null: of none) may not keep real time (run/realtime.h); empty if they do. `bound`: of runs
  // by bind(), which do not ask the system about mapped files of weights.
  std::string breaks_realtime(const session::Planned* plan, bool bound = false) const;
  // A plan for the input types that the model declares, for inspection, with native code of all loops.
  Result<session::Planned> plan_model() const;
  // A plan for writers of code (session/plain_program.h).
  Result<std::shared_ptr<const plan::Program>> plain_program(const session::PlainSizes& known) const;
  // The same model for observers of runs (SessionOptions::observed), as it is written: no rewrites, no native code.
  // For feeds of which one is None, a model without that input, as run() takes it. Made by the first call, and kept.
  // Errors: those of loading, and kInvalidArgument as of run().
  Result<std::shared_ptr<const Session>> observed(std::span<const Feed> feeds) const;
  // The values of the model; only of observed().
  const session::ModelValues& model_values() const;
  // Remarks of rewrites of loops when the model was loaded.
  const opt::Remarks& load_remarks() const;
  const run::NativeCache& native_cache() const;
  // The graph behind the pass SessionOptions::dump, and the program for the given feeds, for people and tests.
  Result<std::string> dump_graph() const;
  // The graph after rewriting for other programs, as a serialised model (model/export.h).
  Result<std::string> optimized_model() const;
  Result<std::string> dump_plan(std::span<const Feed> feeds) const;

 private:
  Session();
  struct Impl;
  Status run_without(const std::vector<bool>& absent, std::span<const Feed> feeds, std::span<const size_t> outputs,
                     std::span<AnyValue* const> results, const RunOptions& options) const;
  template <class Load>
  static Result<std::unique_ptr<Session>> opened(const SessionOptions& options, Load&& load);
  std::unique_ptr<Impl> impl_;
};

}  // namespace treadle
