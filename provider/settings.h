// Options of a session for this provider.
#pragma once

#include <memory>
#include <string>

#include "host.h"

namespace treadle::provider {

constexpr char kName[] = "TreadleExecutionProvider";

using EngineOptions = std::unique_ptr<treadle_options, void (*)(treadle_options*)>;
using RunOptions = std::unique_ptr<treadle_run_options, void (*)(treadle_run_options*)>;

enum class Claiming {
  kCost,   // nodes that treadle is estimated to run no slower than onnxruntime
  kLoops,  // loops and recurrent operators
  kAll,    // whole graphs
};

struct Settings {
  // Reads "ep.treadle.KEY" and "ep.treadleexecutionprovider.KEY"; to the latter onnxruntime adds the options that a
  // program gives with the provider's name. Throws for an unknown key or an invalid value.
  explicit Settings(const OrtSessionOptions* options);

  Claiming claiming = Claiming::kCost;  // "claim"
  int64_t recurrent_weights = 4096;     // a lone LSTM, GRU or RNN with fewer weights stays onnxruntime's
  double time_limit = 0;                // in seconds, for a run of a claim; 0: none
  int64_t iteration_limit = 0;
  int64_t memory_limit = 0;
  EngineOptions engine;

  bool own_threads = false;    // "threads" is given
  bool wants_context = false;  // claims should be saved as nodes EPContext, which this library cannot do

  bool limits_runs() const { return time_limit > 0 || iteration_limit > 0 || memory_limit > 0; }
  RunOptions run_options() const;  // NULL if there are no limits

 private:
  void set(const std::string& key, const std::string& value);
};

}  // namespace treadle::provider
