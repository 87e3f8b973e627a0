#pragma once
// MatMulInteger, exact on 8-bit operands. ScaledMatMulInteger, which also scales the sums, adds a bias and quantises.
// And QLinearMatMul, which is lowered to the latter if it has one scale for all rows.

#include "kernels/qgemm.h"
#include "op/gemm.h"

namespace treadle {

// Inputs of ScaledMatMulInteger behind those of MatMulInteger.
enum ScaledInput : size_t { kScaleOfA = 4, kScaleOfB, kBias, kScaleOfY, kZeroOfY };

struct MatMulIntegerState {
  struct Level {
    int64_t size, a, b, c, a_zero, b_zero;
  };
  kernels::QGemmPlan plan;
  InlineVector<Level, 2> levels;
  const std::byte* packed = nullptr;
  bool has_a_zero = false, has_b_zero = false;
  int64_t matrices = 1;
  ProductGrid grid;
  size_t worker_scratch = 0;  // bytes per thread
  uint32_t output = 0;        // operand number of the result; scratch follows
  // ScaledMatMulInteger:
  kernels::QGemmEpilogue epilogue;  // without the operands of a run
  bool has_bias = false, y_signed = false;
  size_t c_width = 4;
};

uint32_t run_matmul_integer(const void* state, void* const* slots, const uint32_t* operands);

}  // namespace treadle
