#include "op/sizes.h"

#include <algorithm>
#include <limits>

#include "op/size_rules.h"

namespace treadle {

namespace {

// Ends are given beyond any size to mean "to the end", often the largest integer of some type.
constexpr int64_t kBeyond = std::numeric_limits<int32_t>::max();

bool is_never_negative(const Dim& d) {
  return d.lower_bound().value_or(-1) >= 0;
}

bool is_beyond(const Dim& bound) {
  return bound.is_known() && bound.value() >= kBeyond;
}

bool is_before_all(const Dim& bound) {
  return bound.is_known() && bound.value() <= -kBeyond;
}

}  // namespace

// Whatever is known of a size, it is not negative.
Dim DimSizes::min(const Dim& a, const Dim& b) {
  return a.is_known(0) ? a : treadle::min(a, b);
}

Dim DimSizes::max(const Dim& a, const Dim& b) {
  return b.is_known(0) && is_never_negative(a) ? a : treadle::max(a, b);
}

Dim DimSizes::from_front(const Dim& bound, const Dim& size) {
  if (!bound.is_known()) return is_never_negative(bound) ? bound : Dim();
  if (!size.is_known() && is_beyond(bound)) return size;
  if (!size.is_known() && is_before_all(bound)) return 0;
  return bound.value() < 0 ? size + bound : bound;
}

std::pair<Dim, Dim> DimSizes::counts(const Shape& in, const Shape& sizes, std::span<const bool> is_rest) {
  Shape left = in;
  if (is_known(in)) left = {element_count(in)};
  Dim rest = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (is_rest[i]) continue;
    const Dim& size = sizes[i];
    auto* const twin = std::find_if(left.begin(), left.end(), [&](const Dim& d) { return same(d, size); });
    if (twin != left.end() && !twin->is_known(0)) {
      left.erase(static_cast<size_t>(twin - left.begin()));
    } else {
      rest = rest * size;
    }
  }
  return {element_count(left), rest};
}

std::optional<Dim> DimSizes::simple_slice(const Dim& size, const Dim& start, const Dim& end, int64_t step) {
  if (size.is_known() && start.is_known() && end.is_known()) {
    NumberSizes numbers;
    return Dim(size_rules::slice(numbers, size.value(), start.value(), end.value(), step).count);
  }
  if (step < 0) {
    const bool is_whole = (start.is_known(-1) || is_beyond(start)) && is_before_all(end);
    return is_whole && step > -kBeyond ? treadle::ceil_div(size, -step) : Dim();
  }
  if (start.is_known(0) && (is_beyond(end) || is_never_negative(end))) {
    return treadle::ceil_div(is_beyond(end) ? size : min(end, size), step);
  }
  if (!is_beyond(end) || !start.is_known() || start.value() >= 0) return std::nullopt;
  const int64_t last = -std::max(start.value(), -std::numeric_limits<int64_t>::max());
  return treadle::ceil_div(treadle::min(size, last), step);
}

void DimSizes::deduce_unknown(const Shape& in, Shape& sizes) {
  const auto is_unknown = [](const Dim& d) { return d.is_unknown(); };
  if (std::ranges::count_if(sizes, is_unknown) != 1 || !is_known(in)) return;
  Dim& unknown = *std::ranges::find_if(sizes, is_unknown);
  Dim others = 1;
  for (const Dim& size : sizes) {
    if (&size != &unknown) others = others * size;
  }
  const Dim total = element_count(in);
  if (others.is_known() && others.value() > 0 && total.is_known() && total.value() % others.value() == 0) {
    unknown = treadle::floor_div(total, others);
  }
}

}  // namespace treadle
