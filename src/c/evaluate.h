#pragma once
// The body of definition() (definitions.h), for the sources that compile it.

#include "c/definitions.h"
#include "c/values.h"
#include "kernels/written_operations.h"

namespace treadle::c {

template <class Op, class T>
constexpr bool is_shrink_of_integers() {
  return std::is_integral_v<T> && std::is_same_v<Op, kernels::functions::Shrink>;
}

template <class Op, class T>
constexpr bool takes_parameters() {
  using V = Value<T>;
  if constexpr (!std::is_floating_point_v<T>) {
    return false;
  } else {
    return requires(V v, kernels::functions::Params<V> p) { Op::eval(v, p); };
  }
}

inline std::string name_of(const Mask& mask) {
  return fmt::format("(uint8_t){}", mask.v);
}
template <class T>
std::string name_of(const Value<T>& value) {
  return value.v;
}

// The result of the operation on a, b and c; empty if the definition calls the C library or checks integers.
template <class Op, class T, int kInputs>
std::string evaluate() {
  using V = Value<T>;
  const V a = V::of("a"), b = V::of("b"), c = V::of("c");
  if constexpr (!kernels::can_be_written<Op, T>() || is_shrink_of_integers<Op, T>()) {
    return {};
  } else if constexpr (kInputs == 1) {
    if constexpr (requires(V v) { Op::eval(v); }) {
      return name_of(Op::eval(a));
    } else if constexpr (takes_parameters<Op, T>()) {
      return name_of(Op::eval(a, kernels::functions::Params<V>{V::of("alpha"), V::of("beta")}));
    } else {
      return {};
    }
  } else if constexpr (kInputs == 2) {
    return name_of(Op::eval(a, b));
  } else {
    return name_of(Op::eval(a, b, c));
  }
}

template <class T>
Definition definition(kernels::ElementwiseOp op, bool evaluates) {
  Definition made;
  kernels::with_definition<T>(op, [&](auto which, auto inputs) {
    using Op = decltype(which);
    made.has_parameters = takes_parameters<Op, T>() || is_shrink_of_integers<Op, T>();
    if (evaluates) made.result = evaluate<Op, T, inputs.value>();
  });
  return made;
}

}  // namespace treadle::c
