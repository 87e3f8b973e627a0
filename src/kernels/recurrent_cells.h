#pragma once
// What a lane of an LSTM or GRU computes behind its matrix product, over the value types of elementwise_math.h: kernels
// instantiate it for vectors (isa/recurrent.cc), models as C for values that write C. Sigmoids and tanhs stay fractions
// until they are combined, so one division serves two functions.

#include "kernels/elementwise_math.h"

namespace treadle::kernels::cells {

// tanh(x) / divisor
template <class V>
TREADLE_INLINE V tanh_over(V x, V divisor) {
  const auto [top, bottom] = math::tanh_fraction(x);
  return top / (bottom * divisor);
}

// LSTM: c' = forget·c + added, with added = input·tanh(candidate)
template <class V>
TREADLE_INLINE V lstm_state(V forget_gate, V c, V added) {
  return c / math::sigmoid_divisor(forget_gate) + added;
}

// GRU: the preactivation of the candidate, reset·u + x
template <class V>
TREADLE_INLINE V gru_candidate(V reset_gate, V u, V x) {
  return u / math::sigmoid_divisor(reset_gate) + x;
}
// GRU: h' from the candidate's preactivation and the divisor d of the update gate z = 1 / d. With candidate = t / b:
// ((d - 1) t + h b) / (d b).
template <class V>
TREADLE_INLINE V gru_state(V candidate, V d, V h) {
  const auto [top, bottom] = math::tanh_fraction(candidate);
  return multiply_add(d - V(typename V::Scalar(1)), top, h * bottom) / (d * bottom);
}

// (1 - z)·candidate + z·h
template <class V>
TREADLE_INLINE V blend(V z, V candidate, V h) {
  const V one(typename V::Scalar(1));
  return (one - z) * candidate + z * h;
}

}  // namespace treadle::kernels::cells
