#pragma once
// From a type or width known at run time to a C++ type.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "type/element_type.h"

namespace treadle::kernels {

// The element type whose elements are stored in the compute type.
constexpr ElementType element_type_of(ComputeType compute) {
  switch (compute) {
    case ComputeType::kF32:
      return ElementType::kFloat;
    case ComputeType::kF64:
      return ElementType::kDouble;
    case ComputeType::kI32:
      return ElementType::kInt32;
    case ComputeType::kI64:
      return ElementType::kInt64;
    case ComputeType::kU32:
      return ElementType::kUint32;
    case ComputeType::kU64:
      return ElementType::kUint64;
    case ComputeType::kBool:
      return ElementType::kBool;
    case ComputeType::kNone:
      break;
  }
  return ElementType::kUndefined;
}

// Calls f with a zero of the compute type; bools are bytes. Not for kNone.
template <class F>
void with_compute_type(ComputeType compute, F f) {
  switch (compute) {
    case ComputeType::kF32:
      return f(float());
    case ComputeType::kF64:
      return f(double());
    case ComputeType::kI32:
      return f(int32_t());
    case ComputeType::kI64:
      return f(int64_t());
    case ComputeType::kU32:
      return f(uint32_t());
    case ComputeType::kU64:
      return f(uint64_t());
    case ComputeType::kBool:
      return f(uint8_t());
    case ComputeType::kNone:
      return;
  }
}

// The type of accumulators of a compute type.
template <class T>
using Wide = std::conditional_t<
    std::is_floating_point_v<T>, double,
    std::conditional_t<sizeof(T) == 1, uint8_t, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>>;

struct Bits128 {
  uint64_t low, high;
};

// Calls f with a zero of a type that is `width` bytes wide: 1, 2, 4, 8 or 16.
template <class F>
void with_width(size_t width, F f) {
  switch (width) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    case 8:
      return f(uint64_t());
    default:
      return f(Bits128());
  }
}

}  // namespace treadle::kernels
