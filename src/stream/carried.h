#pragma once
// The data that a stream carries from push to push, and its initial values.

#include <string_view>
#include <utility>
#include <vector>

#include "session/inputs.h"

namespace treadle {

struct StreamLayout;

struct Carried {
  std::vector<AnyValue> states;     // declared states
  std::vector<uint8_t> is_initial;  // state i still has its initial zeros
  std::vector<Tensor> tails;        // per timed input: context and waiting samples; undefined before the first push
  int64_t pending = 0;              // waiting samples
  std::vector<Dims> last_dims;  // per output: sizes of the result of the last run; they give the sizes of empty results
  // For streams over time.
  std::vector<AnyValue> found;        // states found in the model; empty before the first block
  std::vector<AnyValue> last_values;  // per output without frames: result of the last run
  bool begun = false;                 // the first block has run
  bool ended = false;

  static Result<Carried> begin(const StreamLayout& layout);

  // Declared states first, then found ones.
  const AnyValue& state(size_t i) const { return i < states.size() ? states[i] : found[i - states.size()]; }
  AnyValue& state(size_t i) { return i < states.size() ? states[i] : found[i - states.size()]; }
};

// Sizes by their names in the model.
using Symbols = std::vector<std::pair<std::string_view, int64_t>>;

// Open sizes have their value in `symbols`, otherwise 1.
Dims first_dims(const Shape& shape, const Symbols& symbols);
// Zeros of these sizes, or an empty value. Errors: kInvalidArgument for a type that has no such value.
Result<AnyValue> first_state(const IoInfo& info, const Shape& sizes, const Symbols& symbols);

}  // namespace treadle
