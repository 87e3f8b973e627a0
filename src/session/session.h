#pragma once
// A loaded model, ready to run: immutable for its users, shared by any number of threads.

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
namespace run {
class NativeCache;
}
namespace session {
class Plan;
struct Fingerprint;
struct Planned;
}  // namespace session

// Runs that one caller makes one after the other: names have been looked up. Not in the reference interpreter.
struct RepeatedRun {
  std::vector<const AnyValue*> inputs;  // parallel to the graph's; tensors only. Null: its default
  std::vector<AnyValue*> outputs;       // parallel to Session::outputs(); written as by Session::run. Null: not wanted
  const session::Plan* plan = nullptr;  // of the run before, which is looked at first
};

// What tests assert and profilers show; counts since the session was opened.
struct SessionCounters {
  int64_t plans = 0;
  int64_t runs = 0;
  int64_t allocations_last_run = 0;  // by the engine, outputs not included
  int64_t peak_bytes_last_run = 0;   // the arena and what tensors of run-time size took at once
  int64_t compilations = 0;          // loops that have become native code
  int64_t cache_loads = 0;           // those of them whose code an earlier process had left
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const std::string& path, const SessionOptions& options = {});
  // `folder`: where external data is looked up (empty: external data is refused). The bytes are copied.
  static Result<std::unique_ptr<Session>> from_bytes(std::span<const std::byte> bytes,
                                                     const SessionOptions& options = {},
                                                     const std::string& folder = {});
  // A graph that has been read already; names in it and its constants are kept.
  static Result<std::unique_ptr<Session>> from_graph(std::unique_ptr<ir::Graph> graph,
                                                     const SessionOptions& options = {});
  ~Session();

  // In place of the options' number, before the first run.
  void set_threads(int threads) const;

  std::span<const IoInfo> inputs() const;  // those that a caller gives; initialisers that may be overridden follow
  std::span<const IoInfo> overridable() const;
  std::span<const IoInfo> outputs() const;
  const ir::Metadata& metadata() const;
  const SessionOptions& options() const;
  // Options that were given and have no effect on this model, each as a sentence.
  std::span<const std::string> remarks() const;
  std::span<const std::string> model_warnings() const;
  const ir::Graph& graph() const;                   // as imported, types inferred
  const session::Fingerprint& fingerprint() const;  // of the graph as it was read

  // Runs the model. `outputs`: indices into outputs(); empty means all. `results` are the places of their values, none
  // of which is fed: a tensor of the right type and sizes that is there already is written in place, else replaced.
  // Errors: kInvalidArgument names the input, what was expected and what was found.
  Status run(std::span<const Feed> feeds, std::span<const size_t> outputs, std::span<AnyValue* const> results,
             const RunOptions& options = {}) const;
  // The same, with one result per output asked for.
  Status run(std::span<const Feed> feeds, std::span<const size_t> outputs, std::vector<AnyValue>& results,
             const RunOptions& options = {}) const;

  Status run(RepeatedRun& run, const RunOptions& options) const;

  SessionCounters counters() const;
  // Returns once nothing is being compiled in the background, nor waits for it.
  void wait_compiled() const;
  // Makes native code of all loops that are planned so far, now; nothing where `jit` is off.
  void compile() const;
  // The plan for these feeds, without feeds the newest one (session/plan_cache.h). Null: there is none, as nothing has
  // run and the model has inputs. It lives as long as the session. Errors: those of planning.
  Result<const session::Planned*> planned(std::span<const Feed> feeds = {}) const;
  // A plan for what the model says of its inputs, made for looking at it, with native code of all loops.
  Result<session::Planned> plan_model() const;
  // What was done to loops when the model was loaded.
  const opt::Remarks& load_remarks() const;
  const run::NativeCache& native_cache() const;
  // The graph after import and rewriting, and the program planned for the given feeds; for people and tests.
  Result<std::string> dump_graph() const;
  // The same graph as a serialised model (model/export.h).
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
