#pragma once
// Contents of small float tensors that sizes are computed from (a size times 0.5, rounded down). They are Dims with
// fractions in them, `N*1/(2)`, which arithmetic on Dims treats like any factor. A fraction is never a size itself:
// rounding leads back to integers, exactly, as if floats had no rounding of their own.

#include <optional>

#include "type/dim.h"

namespace treadle {

bool has_fraction(const Dim& d);
// The number if fractions can say it without rounding (integers, halves, quarters, ...), else unknown.
Dim dim_of_real(double number);
// a / b, where b is not zero: a size that is divided by is taken to be positive.
Dim real_quotient(const Dim& a, const Dim& b);
// As Floor, Ceil and conversions to integers do; unknown where the result is no expression over integers.
Dim rounded_down(const Dim& d);
Dim rounded_up(const Dim& d);
Dim rounded_to_zero(const Dim& d);

}  // namespace treadle
