#pragma once
// Options of opening a session.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/denormals.h"
#include "run/options.h"
#include "type/tensor.h"

namespace treadle {

struct OpDef;

namespace session {
class GraphDump;
}

enum class Tier : uint8_t {
  kProgram,    // the planned program: the default
  kReference,  // the reference interpreter: node by node with kernels of narrowest_isa(), without rewrites
};

// The type in which weights of recurrences are stored: those of RNN, LSTM and GRU, and constant right-hand sides of
// products in loops.
enum class Weights : uint8_t {
  kF32,  // as in the model
  kF16,  // float weights are rounded to float16 and summed in f32; the reference interpreter ignores it
};

struct SessionOptions {
  Tier tier = Tier::kProgram;
  int threads = 0;       // 0: the number of CPUs that the process may use; 1 starts no threads
  bool optimize = true;  // rewrite the graph before planning
  // Plan for observers of runs (plan::ProgramOptions::observed), and number the values of the model
  // (session/origins.h).
  bool observed = false;
  // Allow another order of float sums over time, which rounds differently.
  bool associative_math = false;
  Jit jit = Jit::kAuto;
  Weights weights = Weights::kF32;
  // Of runs, and of what is computed beforehand for them.
  Denormals denormals = Denormals::kKeep;
  // Let the body's condition end a Loop without cond. The specification says that the condition is ignored.
  bool obey_loop_conditions = false;
  bool copy_weights = false;  // copy weights into memory when the model is loaded; otherwise runs read them from the
                              // model's files
  int64_t jit_iteration = 0;  // run no native code before so many iterations of a loop (for tests)
  // Folder and size of the cache of native code for later processes; run/native_cache.h has the defaults.
  std::string jit_cache;
  size_t jit_cache_bytes = 0;
  // Limits of loading, and of each planning later on; planning does not look at `cancel`.
  WorkLimits load;
  // Whether the size of the model bounds the folding of constants while loading.
  bool bounded_load = true;
  // Passes to leave out (opt/pipeline.h): names separated by commas. Errors when opening: an unknown name.
  std::string passes_off;
  std::string dump;  // what dump_graph() gives (session/graph_dump.h)
  // Where that is noted, once a session is open. Sessions with copies of its options, as of streams, note theirs there.
  std::shared_ptr<session::GraphDump> dumped;
  int exact_plans = 1;  // how many plans to make for exact sizes before one for any sizes
  // Sizes for symbolic dimensions of inputs, by name ("batch" -> 1), and by the denotation that the specification
  // defines ("DATA_BATCH" -> 1, in any case of letters).
  std::vector<std::pair<std::string, int64_t>> dimension_overrides, denotation_overrides;
  // Contents of initializers by name, which replace the model's.
  std::vector<std::pair<std::string, Tensor>> initializers;
  // Operators for this session only, which precede treadle's. If several have the same name, the last counts.
  std::vector<std::shared_ptr<const OpDef>> operators;
  // Bytes of external data, by the name of the file in the model. They must stay valid while the session is opened.
  std::vector<std::pair<std::string, std::span<const std::byte>>> external_files;
};

namespace session {

// Sets options that have their defaults from TREADLE_JIT=off|auto|always|required[,ITERATION] and
// TREADLE_PASSES_OFF=PASS[,PASS...]. Errors: kInvalidArgument for an invalid value of these, or of any other variable
// of the engine.
Status read_environment(SessionOptions& options);

// Options that the reference interpreter ignores, each as a sentence; empty if another tier runs the model.
std::vector<std::string> remarks_on_reference(const SessionOptions& options);

}  // namespace session

}  // namespace treadle
