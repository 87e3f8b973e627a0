#include "type/dim_fractions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "type/dim_algebra.h"

namespace treadle {

bool has_fraction(const Dim& d) {
  return d.is_symbolic() && std::ranges::any_of(DimAlgebra::expr(d).terms, DimAlgebra::has_fraction);
}

Dim dim_of_real(double number) {
  constexpr double kMost = 1LL << 40;
  constexpr int64_t kParts = 1 << 10;
  const double parts = number * kParts;
  if (!(std::abs(number) < kMost) || parts != std::floor(parts)) return {};
  return real_quotient(Dim(static_cast<int64_t>(parts)), Dim(kParts));
}

Dim real_quotient(const Dim& a, const Dim& b) {
  if (a.is_unknown() || b.is_unknown() || b.is_known(0) || has_fraction(b)) return {};
  if (b.is_known(std::numeric_limits<int64_t>::min())) return {};
  if (b.is_known() && b.value() < 0) return real_quotient(Dim(int64_t{0}) - a, Dim(-b.value()));
  if (b.is_known(1)) return a;
  if (same(a, b)) return 1;
  return a.is_known(0)
             ? a
             : DimAlgebra::multiply(a, DimAlgebra::make({{1, {DimAlgebra::fraction(b)}, "1/(" + b.to_string() + ")"}}));
}

Dim rounded_down(const Dim& d) {
  if (!has_fraction(d)) return d;
  const auto quotient = DimAlgebra::as_quotient(d);
  return quotient ? floor_div(quotient->first, quotient->second) : Dim();
}

Dim rounded_up(const Dim& d) {
  if (!has_fraction(d)) return d;
  const auto quotient = DimAlgebra::as_quotient(d);
  return quotient ? ceil_div(quotient->first, quotient->second) : Dim();
}

Dim rounded_to_zero(const Dim& d) {
  if (!has_fraction(d)) return d;
  return d.lower_bound().value_or(-1) >= 0 ? rounded_down(d) : Dim();
}

}  // namespace treadle
