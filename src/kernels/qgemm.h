#pragma once
// Products of 8-bit matrices: i32 sums of (a - a_zero)(b - b_zero), exact on every CPU (modulo 2^32), and epilogues
// that convert the sums to 8-bit or float results. Used as gemm.h: prepare once, pack weights once, run without
// allocating.

#include <cstddef>
#include <cstdint>

#include "kernels/gemm.h"

namespace treadle::kernels {

struct QGemmShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, a_col = 1;  // in elements; may be negative
  int64_t b_row = 0, b_col = 1;
  int64_t c_row = 0;
  bool a_signed = false, b_signed = false;  // int8 if true, otherwise uint8
  bool b_packed = false;
  bool a_zero_per_row = false;     // one zero point for each row of A; otherwise one for all
  bool b_zero_per_column = false;  // one for each column of B; otherwise one for all
};

// How the i32 sums are stored. value = float(sum + bias[j]) * scale + float_bias[j], clamped to [low, high]. `scale` is
// a_scale * b_scale[j] for kScaled and if c_scale divides, otherwise a_scale * b_scale[j] / c_scale.
enum class QGemmOutput : uint8_t {
  kInt32,   // the sums (+ bias)
  kScaled,  // float: value
  kUint8,   // saturate(round half to even(value or value / c_scale) + c_zero)
  kInt8,    // likewise
};

struct QGemmEpilogue {
  QGemmOutput output = QGemmOutput::kInt32;
  const int32_t* bias = nullptr;      // per column, or null
  const float* float_bias = nullptr;  // per column, or null
  const float* a_scale = nullptr;     // one, or one per row
  const float* b_scale = nullptr;     // one, or one per column
  const float* c_scale = nullptr;     // one
  int32_t c_zero = 0;
  float low = -__builtin_inff(), high = __builtin_inff();
  bool a_scale_per_row = false, b_scale_per_column = false;
  bool divides = false;     // c_scale divides the value, as in QuantizeLinear; otherwise it divides the scale
  bool accumulate = false;  // kScaled: C += value instead of C = value
};

struct QGemmPlan;
struct QGemmOperands {
  const void* a;
  const void* b;       // B, or packed B
  const void* a_zero;  // of A's type; null means 0
  const void* b_zero;  // of B's type; null means 0
  void* c;
  void* scratch;  // plan.scratch_bytes, one per thread
};
using QGemmRun = void (*)(const QGemmPlan& plan, const QGemmOperands& operands, const QGemmEpilogue& epilogue,
                          const GemmRange& range);
using QGemmPack = void (*)(const QGemmPlan& plan, const void* b, void* packed, StopPoll& stop);

struct QGemmPlan {
  QGemmShape shape;
  int32_t column_step = 1;  // ranges must begin at multiples of this
  size_t scratch_bytes = 0;
  size_t packed_b_bytes = 0;
  QGemmRun run = nullptr;
  QGemmPack pack = nullptr;
};

QGemmPlan prepare_qgemm(const QGemmShape& shape);

// Ends early as pack_b does.
inline void pack_qgemm_b(const QGemmPlan& plan, const void* b, void* packed, StopPoll& stop) {
  plan.pack(plan, b, packed, stop);
}
inline void pack_qgemm_b(const QGemmPlan& plan, const void* b, void* packed) {
  StopPoll stop;
  plan.pack(plan, b, packed, stop);
}
inline void run_qgemm(const QGemmPlan& plan, const QGemmOperands& operands, const QGemmEpilogue& epilogue) {
  plan.run(plan, operands, epilogue, {0, plan.shape.m, 0, plan.shape.n});
}
inline void run_qgemm_rows(const QGemmPlan& plan, int64_t rows, const QGemmOperands& operands,
                           const QGemmEpilogue& epilogue) {
  plan.run(plan, operands, epilogue, {0, rows, 0, plan.shape.n});
}

}  // namespace treadle::kernels
