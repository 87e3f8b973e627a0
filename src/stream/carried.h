#pragma once
// What a stream carries from push to push, and what it begins with.

#include <string_view>
#include <utility>
#include <vector>

#include "session/inputs.h"

namespace treadle {

struct StreamLayout;

struct Carried {
  std::vector<AnyValue> states;     // declared ones
  std::vector<uint8_t> is_initial;  // state i is still the zeros that it began with
  std::vector<Tensor> tails;        // per timed input: context and waiting samples; undefined before the first push
  int64_t pending = 0;              // samples that wait
  std::vector<Dims> last_dims;      // per output, of its last run; for the sizes of empty results
  // Of a stream over time.
  std::vector<AnyValue> found;        // states that were found in the model; empty before the first block
  std::vector<AnyValue> last_values;  // per output without frames, of its last run
  bool begun = false;                 // the first block has run
  bool ended = false;

  static Result<Carried> begin(const StreamLayout& layout);

  // Declared ones, then those found.
  const AnyValue& state(size_t i) const { return i < states.size() ? states[i] : found[i - states.size()]; }
  AnyValue& state(size_t i) { return i < states.size() ? states[i] : found[i - states.size()]; }
};

// Sizes, by the names that the model gives them.
using Symbols = std::vector<std::pair<std::string_view, int64_t>>;

// Open sizes as in `symbols`, else 1.
Dims first_dims(const Shape& shape, const Symbols& symbols);
// Zeros of these sizes, or what is empty. Errors: kInvalidArgument for a type that has no such value.
Result<AnyValue> first_state(const IoInfo& info, const Shape& sizes, const Symbols& symbols);

}  // namespace treadle
