#pragma once
// A loaded model, ready to run: immutable for its users, shared by any number of threads.

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "ir/graph.h"
#include "type/any_value.h"

namespace treadle::exec {
struct Explanation;
class Profile;
}  // namespace treadle::exec

namespace treadle {

enum class Tier : uint8_t {
  kProgram,  // planned: the default
  kJudge,    // node by node with baseline kernels, no rewriting: the slow obvious reference
};

// When loops become native code; results are the same to the last bit.
enum class Jit : uint8_t {
  kOff,
  kAuto,      // loops that have taken long enough are compiled in the background
  kAlways,    // before a loop first runs
  kRequired,  // likewise, and a loop that cannot be native code is an error of the run
};

// As options write them: "off", "auto", "always", "required".
std::string_view name(Jit jit);
std::optional<Jit> jit_named(std::string_view name);

// How weights of recurrences are kept: those of RNN, LSTM and GRU, and constant right-hand sides of products in loops.
enum class Weights : uint8_t {
  kF32,  // as the model has them
  kF16,  // float weights rounded to float16, sums in f32; not in the judge
};

struct SessionOptions {
  Tier tier = Tier::kProgram;
  int threads = 0;       // 0: as many as CPUs that the process may use; 1 starts none
  bool optimize = true;  // rewrites of the graph before planning
  // Sums of floats over time may be put together in another order, which rounds differently.
  bool associative_math = false;
  Jit jit = Jit::kAuto;
  Weights weights = Weights::kF32;
  bool copy_weights = false;  // into memory when the model is loaded; else they are read in the model's files
  int64_t jit_trip = 0;       // no native code before so many trips of a loop (for tests)
  // Where native code is kept for later processes, and how much of it (see exec/native_cache.h for what is meant by
  // leaving them alone).
  std::string jit_cache;
  size_t jit_cache_bytes = 0;
  // Of loading, and of each planning later on, for which `cancel` is not asked.
  WorkLimits load;
  // Whether folding constants while loading is bounded by the size of the model.
  bool bounded_load = true;
  // Passes that do not run (opt/pipeline.h): names with commas between them. An unknown name is an error of opening.
  std::string passes_off;
  std::string dump;     // a pass: dump_graph() gives the graph as it was behind it when something was planned last
  int exact_plans = 1;  // so many are for the very sizes that they were made for, before one is for any
  // Sizes for symbolic dimensions of inputs, by name ("batch" -> 1), and for those that the model denotes by a word of
  // the specification ("DATA_BATCH" -> 1; in any case of letters).
  std::vector<std::pair<std::string, int64_t>> dimension_overrides, denotation_overrides;
};

// Limits of one run. A limit that is hit is an error kLimit that says which and where; cancelling is kCancelled.
struct RunOptions : WorkLimits {
  int64_t trip_limit = 0;            // trips of all loops together; 0: none
  exec::Profile* profile = nullptr;  // records the run, which is interpreted for it; not in the judge
};

struct IoInfo {
  std::string name;
  Type type;
  bool has_default = false;  // an initialiser stands in when the caller gives no value
};

// A value of the caller's, who keeps it until the call returns.
struct Feed {
  std::string_view name;
  const AnyValue* value;  // not null. kNone: an empty optional, or an input left to its default
};

// Runs that one caller makes one after the other: names have been looked up. Not in the judge.
struct RepeatedRun {
  std::vector<const AnyValue*> inputs;  // parallel to the graph's; tensors only. Null: its default
  std::vector<AnyValue*> outputs;       // parallel to Session::outputs(); written as by Session::run. Null: not wanted
  const void* plan = nullptr;           // of the run before, which is looked at first
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

  std::span<const IoInfo> inputs() const;  // those that a caller gives; initialisers that may be overridden follow
  std::span<const IoInfo> overridable() const;
  std::span<const IoInfo> outputs() const;
  const ir::Metadata& metadata() const;
  const SessionOptions& options() const;
  // Options that were given and have no effect on this model, each as a sentence.
  std::span<const std::string> remarks() const;
  const ir::Graph& graph() const;  // as imported, types inferred

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
  // What became of the loops (exec/explain.h): of the plan for these feeds, without feeds of the newest plan. Before
  // the first run, and without feeds, of a plan for what the model says of its inputs, whose loops are compiled for
  // this.
  Result<exec::Explanation> explain(std::span<const Feed> feeds = {}) const;
  // The graph after import and rewriting, and the program planned for the given feeds; for people and tests.
  Result<std::string> dump_graph() const;
  // The same graph as a serialised model (model/export.h).
  Result<std::string> optimized_model() const;
  Result<std::string> dump_plan(std::span<const Feed> feeds) const;

 private:
  Session();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace treadle
