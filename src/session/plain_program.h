#pragma once
// The program of a model for given sizes, as writers of code read it (plan::ProgramOptions::plain).

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu.h"
#include "plan/program.h"
#include "session/loaded.h"

namespace treadle::session {

struct PlainSizes {
  // Sizes by the model's names for them ("N"), or by input and axis ("x:0").
  std::vector<std::pair<std::string, int64_t>> sizes;
  std::span<const Feed> fixed;  // inputs that are always given these values
  Isa isa = Isa::kAvx2;         // instruction set of the kernels whose orders of sums the code has
};

// Errors: kInvalidArgument for an input whose size stays open, for a name that the model lacks, for a value that does
// not fit its input; those of planning.
Result<std::shared_ptr<const plan::Program>> plain_program(const Loaded& loaded, const PlainSizes& known);

}  // namespace treadle::session
