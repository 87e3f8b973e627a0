#pragma once
// The epilogue of a run, in its element type.

#include <cstdint>
#include <type_traits>

#include "kernels/gemm.h"
#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template <class T>
T to_element(double value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<int64_t>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
Epilogue<T> make_epilogue(const GemmPlan& plan, const GemmOperands& operands) {
  const GemmShape& s = plan.shape;
  Epilogue<T> e{to_element<T>(s.alpha), to_element<T>(s.beta), static_cast<const T*>(operands.bias), s.bias_row,
                s.bias_col};
  if constexpr (!std::is_integral_v<T>) {
    e.addend = static_cast<const T*>(operands.addend);
    e.clamps = s.low != -__builtin_inff() || s.high != __builtin_inff();
    e.low = static_cast<T>(s.low);
    e.high = static_cast<T>(s.high);
  }
  return e;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
