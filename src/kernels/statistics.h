#pragma once
// Statistics of the elements of tensors, for looking at the values of a run.

#include <cstdint>
#include <limits>

#include "type/element_type.h"

namespace treadle::kernels {

// Numbers are the elements that are not NaN. All sums are over finite elements.
struct Statistics {
  int64_t count = 0;  // of all elements
  int64_t nan = 0, infinite = 0, zero = 0;
  int64_t denormal = 0;  // nearer to 0 than any normal number of the elements' type, but for 0
  // The least and the largest number, infinities included; low > high: there is no number.
  double low = std::numeric_limits<double>::infinity(), high = -low;
  double sum = 0, squares = 0;

  int64_t finite() const { return count - nan - infinite; }
  double mean() const;  // NaN if no element is finite
  double norm() const;  // the root of the sum of squares

  // Statistics of these elements and those of `other` together.
  void add(const Statistics& other);
};

// Strings have none.
bool has_statistics(ElementType type);
// The type whose numbers are parts of a complex number; any other type itself.
ElementType part_of(ElementType type);
// The least positive number with all digits of the type, or of the parts of a complex type. 0 for types without
// denormal numbers.
double least_normal(ElementType type);

// Of `count` elements at `x`, which may lie anywhere. Booleans count as 0 and 1, complex numbers as their two parts. An
// integer of 64 bits counts as the nearest double.
Statistics statistics_of(ElementType type, const void* x, int64_t count);

// Of one element; inlined, since bodies of loops have many of these.
inline Statistics statistics_of(float x) {
  Statistics s;
  s.count = 1;
  const auto number = static_cast<double>(x);
  if (number - number == 0) {
    s.low = s.high = s.sum = number;
    s.squares = number * number;
    s.zero = x == 0;
    s.denormal = x != 0 && x < std::numeric_limits<float>::min() && x > -std::numeric_limits<float>::min();
  } else if (number == number) {
    s.low = s.high = number;
    s.infinite = 1;
  } else {
    s.nan = 1;
  }
  return s;
}

}  // namespace treadle::kernels
