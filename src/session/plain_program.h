#pragma once
// The program of a model for given sizes, as writers of code read it (plan::ProgramOptions::plain).

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu.h"
#include "plan/program.h"
#include "session/loaded.h"

namespace treadle::session {

// Open sizes of inputs, by the model's names for them ("N"), or by input and axis ("x:0").
class GivenSizes {
 public:
  explicit GivenSizes(std::span<const std::pair<std::string, int64_t>> given) : given_(given), used_(given.size()) {}

  // Sets all open sizes of an input. Errors: kInvalidArgument for a type that is no tensor of known rank, and for a
  // size that stays open.
  Status close(const std::string& input, Type& type);
  // Sets the sizes of an input that are open. Returns the first one that stays so; empty: none does.
  std::string set(const std::string& input, Type& type);
  // Errors: kInvalidArgument for a size that no input has.
  Status all_used() const;

 private:
  std::optional<int64_t> find(std::string_view name);

  std::span<const std::pair<std::string, int64_t>> given_;
  std::vector<bool> used_;
};

struct PlainSizes {
  std::vector<std::pair<std::string, int64_t>> sizes;  // GivenSizes
  std::span<const Feed> fixed;                         // inputs that are always given these values
  // The types of these inputs, with known sizes.
  std::span<const std::pair<std::string, Type>> types;
  Isa isa = Isa::kAvx2;  // instruction set of the kernels whose orders of sums the code has
};

// Errors: kInvalidArgument for an input whose size stays open, for a name that the model lacks, for a value that does
// not fit its input; those of planning.
Result<std::shared_ptr<const plan::Program>> plain_program(const Loaded& loaded, const PlainSizes& known);

}  // namespace treadle::session
