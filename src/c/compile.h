#pragma once
// A model as C: one source and one header, without a runtime.

#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/status.h"
#include "plan/program.h"
#include "type/tensor.h"

namespace treadle::c {

struct Options {
  std::string prefix = "model";  // of all names that the header declares
  // The instruction set whose kernels the code equals bit for bit. kBaseline: no fused multiply-add.
  Isa isa = Isa::kAvx2;
  bool libm = false;                 // operations without a formula of the engine's own may call <math.h>
  std::vector<std::string> outputs;  // the model's names of outputs, which rewrites may change
};

struct Files {
  std::string source, header;
};

// A stream whose pushes take a fixed number of samples, as programs that share its states. Programs know inputs by the
// names of the model.
struct StreamPrograms {
  struct Timed {
    std::string name;
    int64_t axis = 0;
  };
  struct State {
    std::string name;
    Type type;
    Tensor initial;  // undefined: zeros
  };
  struct Output {
    std::string name;
    int64_t axis = -1;  // along which frames are; -1: each push gives the newest value
  };
  struct Run {
    std::shared_ptr<const plan::Program> program;  // null: there is no such run
    int64_t samples = 0;                           // that it takes of each timed input, beside the context
    std::vector<size_t> outputs, states;           // positions among its outputs, of `outputs` and of next states
  };
  std::vector<Timed> timed;
  std::vector<State> states;
  std::vector<Output> outputs;
  int64_t samples = 0;         // of a push, of each timed input
  int64_t context = 0;         // samples before a run's, which it sees again; zeros at the start
  int64_t waiting_pushes = 0;  // before the first run
  int64_t waiting = 0;         // samples that wait for the next push, once the first run is done
  Run first;                   // the run of the first push that runs; none: as all
  Run steady;                  // the run of each later push
  Run rest;                    // of the waiting samples, at the end of the signal
  bool has_end = false;        // the end of the signal is a run; false: it adds nothing
};

// `program`: made with ProgramOptions::plain. Errors: kNotImplemented with every node that cannot be written, and why.
Result<Files> compile(const plan::Program& program, const Options& options);
// Errors: the same.
Result<Files> compile_stream(const StreamPrograms& stream, const Options& options);

}  // namespace treadle::c
