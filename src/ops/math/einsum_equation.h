#pragma once
// The parsed equation of Einsum: the label of each dimension.

#include <string_view>

#include "op/context.h"

namespace treadle::einsum {

// Letters are 0 to 51. Dimensions of the ellipsis are 52 and up, counted from the last one.
using Label = int8_t;
using Labels = InlineVector<Label, 8>;
inline constexpr Label kEllipsis = 52;
inline constexpr int kLabels = kEllipsis + 32;

struct Equation {
  InlineVector<Labels, 4> inputs;
  Labels output;
};

// ranks[i]: rank of input i. Spaces are ignored. Without "->", the output has the ellipsis followed by the letters that
// occur once, in alphabetical order.
Result<Equation> parse(std::string_view text, std::span<const int64_t> ranks);

}  // namespace treadle::einsum
