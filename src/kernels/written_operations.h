#pragma once
// The definitions of elementwise operations for value types that write code: native code (jit/steps.cc) and C
// (c/maths.cc).

#include <type_traits>

#include "kernels/elementwise_functions.h"
#include "kernels/elementwise_ops.h"
#include "kernels/reduce.h"

namespace treadle::kernels {

// Whether the operation calls the C library, for each lane or for some lanes.
template <class Op, class T>
constexpr bool uses_library() {
  if constexpr (requires { Op::kFormulaOfFloat32; }) return !std::is_same_v<T, float>;
  return requires { Op::kByLane; } || requires { Op::kCallsLibrary; };
}

// Whether it is defined on single integers, which it checks.
template <class Op, class T>
constexpr bool checks_integers() {
  if constexpr (std::is_integral_v<T>) return requires(T t, uint32_t& e) { Op::template integer<T>(t, t, e); };
  return false;
}

// Whether its definition serves a value type that writes code.
template <class Op, class T>
constexpr bool can_be_written() {
  return !uses_library<Op, T>() && !checks_integers<Op, T>() && !std::is_same_v<Op, functions::Where>;
}

// Calls f with a number of the compute type; uint8_t stands for bool. False: another type.
template <class F>
bool with_written_type(ElementType type, F f) {
  switch (type) {
    case ElementType::kFloat:
      return f(float()), true;
    case ElementType::kDouble:
      return f(double()), true;
    case ElementType::kInt32:
      return f(int32_t()), true;
    case ElementType::kInt64:
      return f(int64_t()), true;
    case ElementType::kUint32:
      return f(uint32_t()), true;
    case ElementType::kUint64:
      return f(uint64_t()), true;
    case ElementType::kBool:
      return f(uint8_t()), true;
    default:
      return false;
  }
}

// Calls f with the definition of the operation and its number of inputs, if the operation has compute type T.
template <class T, class F>
void with_definition(ElementwiseOp op, F f) {
  switch (op) {
#define X(name, inputs, domain, ...)                               \
  case ElementwiseOp::k##name:                                     \
    if constexpr (in_domain<T, OpDomain::k##domain>()) {           \
      f(functions::name(), std::integral_constant<int, inputs>()); \
    }                                                              \
    break;
    TREADLE_ELEMENTWISE_OPS(X)
#undef X
  }
}

// The operation that combines the terms of a reduction.
constexpr ElementwiseOp combining(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMax:
      return ElementwiseOp::kMax;
    case ReduceOp::kMin:
      return ElementwiseOp::kMin;
    case ReduceOp::kProd:
      return ElementwiseOp::kMul;
    default:
      return ElementwiseOp::kAdd;
  }
}

}  // namespace treadle::kernels
