#pragma once
// A model as C: one source and one header, without a runtime.

#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/status.h"
#include "plan/program.h"
#include "plan/stream_programs.h"

namespace treadle::c {

struct Options {
  std::string prefix = "model";  // of all names that the header declares
  // The instruction set whose kernels the code equals bit for bit. kBaseline: no fused multiply-add.
  Isa isa = Isa::kAvx2;
  bool libm = false;                 // operations without a formula of the engine's own may call <math.h>
  bool weights_apart = false;        // constants of kLeastWeight bytes and more are bytes that a caller hands in
  std::vector<std::string> outputs;  // the model's names of outputs, which rewrites may change
};

// Smaller constants stay in the source.
inline constexpr size_t kLeastWeight = 64;

struct Files {
  std::string source, header;
  std::string weights;  // with Options::weights_apart; little-endian
};

// `program`: made with ProgramOptions::plain. Errors: kNotImplemented with every node that cannot be written, and why.
Result<Files> compile(const plan::Program& program, const Options& options);
// Errors: the same.
Result<Files> compile_stream(const plan::StreamPrograms& stream, const Options& options);

}  // namespace treadle::c
