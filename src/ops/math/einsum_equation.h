#pragma once
// The equation of Einsum, parsed: which label stands for which dimension.

#include <string_view>

#include "op/context.h"

namespace treadle::einsum {

// Letters are 0 to 51, the dimensions of the ellipsis 52 and up, counted from the last one.
using Label = int8_t;
using Labels = InlineVector<Label, 8>;
inline constexpr Label kEllipsis = 52;
inline constexpr int kLabels = kEllipsis + 32;

struct Equation {
  InlineVector<Labels, 4> inputs;
  Labels output;
};

// ranks[i]: of input i. Blanks are ignored. Without "->", the output has the ellipsis and then, in alphabetical order,
// the letters that occur once.
Result<Equation> parse(std::string_view text, std::span<const int64_t> ranks);

}  // namespace treadle::einsum
