// Kernels for one element, for loop counters, limits and conditions. They give the results of the rows of
// kernels/elementwise_ops.h without the calls around them.

#include <type_traits>

#include "op/elementwise.h"

namespace treadle {

namespace {

using kernels::ElementwiseOp;

// Integers wrap, so arithmetic is unsigned.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

// clang-format off
struct Add { template <class T> static T eval(T a, T b) { return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b)); } };
struct Sub { template <class T> static T eval(T a, T b) { return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b)); } };
struct Mul { template <class T> static T eval(T a, T b) { return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b)); } };
struct Div { template <class T> static T eval(T a, T b) { return a / b; } };
struct Equal { template <class T> static bool eval(T a, T b) { return a == b; } };
struct Less { template <class T> static bool eval(T a, T b) { return a < b; } };
struct Greater { template <class T> static bool eval(T a, T b) { return a > b; } };
struct LessOrEqual { template <class T> static bool eval(T a, T b) { return a <= b; } };
struct GreaterOrEqual { template <class T> static bool eval(T a, T b) { return a >= b; } };
// clang-format on

template <class T, class Op>
uint32_t run(const void*, void* const* slots, const uint32_t* operands) {
  const T a = *static_cast<const T*>(slots[operands[0]]);
  const T b = *static_cast<const T*>(slots[operands[1]]);
  using R = decltype(Op::template eval<T>(a, b));
  *static_cast<R*>(slots[operands[2]]) = Op::template eval<T>(a, b);
  return 0;
}

template <class T>
KernelFn number_kernel(ElementwiseOp op) {
  switch (op) {
    case ElementwiseOp::kAdd:
      return run<T, Add>;
    case ElementwiseOp::kSub:
      return run<T, Sub>;
    case ElementwiseOp::kMul:
      return run<T, Mul>;
    case ElementwiseOp::kDiv:  // of integers can fail
      if constexpr (std::is_floating_point_v<T>) return run<T, Div>;
      return nullptr;
    case ElementwiseOp::kEqual:
      return run<T, Equal>;
    case ElementwiseOp::kLess:
      return run<T, Less>;
    case ElementwiseOp::kGreater:
      return run<T, Greater>;
    case ElementwiseOp::kLessOrEqual:
      return run<T, LessOrEqual>;
    case ElementwiseOp::kGreaterOrEqual:
      return run<T, GreaterOrEqual>;
    default:
      return nullptr;
  }
}

// A stored bool is a byte; any non-zero byte is true.
template <class Fn>
uint32_t run_logical(void* const* slots, const uint32_t* operands, Fn&& fn) {
  const bool a = *static_cast<const uint8_t*>(slots[operands[0]]) != 0;
  const bool b = *static_cast<const uint8_t*>(slots[operands[1]]) != 0;
  *static_cast<uint8_t*>(slots[operands[2]]) = fn(a, b);
  return 0;
}
uint32_t run_and(const void*, void* const* slots, const uint32_t* operands) {
  return run_logical(slots, operands, [](bool a, bool b) { return a && b; });
}
uint32_t run_or(const void*, void* const* slots, const uint32_t* operands) {
  return run_logical(slots, operands, [](bool a, bool b) { return a || b; });
}
uint32_t run_xor(const void*, void* const* slots, const uint32_t* operands) {
  return run_logical(slots, operands, [](bool a, bool b) { return a != b; });
}
uint32_t run_equal(const void*, void* const* slots, const uint32_t* operands) {
  return run_logical(slots, operands, [](bool a, bool b) { return a == b; });
}
uint32_t run_not(const void*, void* const* slots, const uint32_t* operands) {
  *static_cast<uint8_t*>(slots[operands[1]]) = *static_cast<const uint8_t*>(slots[operands[0]]) == 0;
  return 0;
}

KernelFn bool_kernel(ElementwiseOp op) {
  switch (op) {
    case ElementwiseOp::kAnd:
      return run_and;
    case ElementwiseOp::kOr:
      return run_or;
    case ElementwiseOp::kXor:
      return run_xor;
    case ElementwiseOp::kEqual:
      return run_equal;
    case ElementwiseOp::kNot:
      return run_not;
    default:
      return nullptr;
  }
}

}  // namespace

KernelFn single_element_kernel(ElementwiseOp op, ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return number_kernel<float>(op);
    case ElementType::kDouble:
      return number_kernel<double>(op);
    case ElementType::kInt32:
      return number_kernel<int32_t>(op);
    case ElementType::kInt64:
      return number_kernel<int64_t>(op);
    case ElementType::kBool:
      return bool_kernel(op);
    default:
      return nullptr;
  }
}

}  // namespace treadle
