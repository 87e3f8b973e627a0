#pragma once
// Contents of small float tensors that sizes are computed from (such as a size times 0.5, rounded down). They are Dims
// with fractions, `N*1/(2)`, which the arithmetic of Dims treats as factors. A fraction is never a size itself.
// Rounding turns it into integers exactly, as if floats did not round.

#include <optional>

#include "type/dim.h"

namespace treadle {

bool has_fraction(const Dim& d);
// The number if fractions can express it exactly (integers, halves, quarters, ...), else unknown.
Dim dim_of_real(double number);
// a / b with b not zero. A divisor that is a size is taken to be positive.
Dim real_quotient(const Dim& a, const Dim& b);
// As Floor, Ceil and conversions to integers do. Unknown if the result is not an expression over integers.
Dim rounded_down(const Dim& d);
Dim rounded_up(const Dim& d);
Dim rounded_to_zero(const Dim& d);

}  // namespace treadle
