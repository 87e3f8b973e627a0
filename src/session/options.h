#pragma once
// What a caller says when a session is opened.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "run/options.h"
#include "type/tensor.h"

namespace treadle {

struct OpDef;

enum class Tier : uint8_t {
  kProgram,    // planned: the default
  kReference,  // node by node with kernels of narrowest_isa(), no rewriting: the slow obvious reference
};

// How weights of recurrences are kept: those of RNN, LSTM and GRU, and constant right-hand sides of products in loops.
enum class Weights : uint8_t {
  kF32,  // as the model has them
  kF16,  // float weights rounded to float16, sums in f32; not in the reference interpreter
};

struct SessionOptions {
  Tier tier = Tier::kProgram;
  int threads = 0;       // 0: as many as CPUs that the process may use; 1 starts none
  bool optimize = true;  // rewrites of the graph before planning
  // Sums of floats over time may be put together in another order, which rounds differently.
  bool associative_math = false;
  Jit jit = Jit::kAuto;
  Weights weights = Weights::kF32;
  // A Loop without cond: its body's condition ends it. The specification says that the condition is ignored.
  bool obey_loop_conditions = false;
  bool copy_weights = false;  // into memory when the model is loaded; else they are read in the model's files
  int64_t jit_iteration = 0;  // no native code before so many iterations of a loop (for tests)
  // Where native code is kept for later processes, and how much of it (see run/native_cache.h for what is meant by
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
  // Contents of initializers by name, in place of the model's.
  std::vector<std::pair<std::string, Tensor>> initializers;
  // Operators of these sessions alone, before treadle's own; of several of one name the last.
  std::vector<std::shared_ptr<const OpDef>> operators;
  // Bytes of external data by what the model calls the file; somebody else's while a session is opened.
  std::vector<std::pair<std::string, std::span<const std::byte>>> external_files;
};

namespace session {

// TREADLE_JIT=off|auto|always|required[,TRIP] and TREADLE_PASSES_OFF=PASS[,PASS...] take the place of the options that
// were left alone. Errors: kInvalidArgument for these and all other variables of the engine that hold no such value.
Status read_environment(SessionOptions& options);

// What was asked for and the reference interpreter does not have, each as a sentence; nothing where another tier runs
// the model.
std::vector<std::string> remarks_on_reference(const SessionOptions& options);

}  // namespace session

}  // namespace treadle
