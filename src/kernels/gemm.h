#pragma once
// Matrix products on raw pointers: C[m,n] = alpha * A[m,k] B[k,n] + beta * bias + addend, clamped.
//
// What depends on sizes is decided once, in prepare_gemm; a run allocates nothing, takes no lock and cannot fail.
//
//   GemmPlan plan = prepare_gemm(ComputeType::kF32, shape);
//   pack_b(plan, weights, packed);                     // once, where B is constant (shape.b_packed)
//   run_gemm(plan, a, packed, bias, c, scratch);       // as often as wanted, from any thread
//
// Order of sums. Every element of C is one chain over k, acc = a[i,k] * b[k,j] + acc from k = 0 on (fused where the
// instruction set fuses). Where n <= kGemmDotColumns, it is a fixed number of partial sums that depends on k alone: up
// to kGemmShortDot steps those of a ReduceSum of the rounded products, so that a product may take the form of one. So
// on one instruction set the result for a row does not depend on m, on how rows and columns are split into ranges, on
// strides, nor on whether B is packed: a GEMM over all time steps equals its GEMV per step bit for bit.
//
// Element types: f32 and f64; i32, u32, i64, u64 wrap. Half-precision operands are converted to f32 by the caller.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/scoped_choice.h"
#include "base/stop.h"
#include "type/element_type.h"

namespace treadle::kernels {

// Strides count elements and may be zero or negative, so that transposed, broadcast and reversed operands need no copy.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, a_col = 1;  // A[i,p] is a[i * a_row + p * a_col]
  int64_t b_row = 0, b_col = 1;  // B[p,j] is b[p * b_row + j * b_col], as run_gemm or pack_b is given it
  int64_t c_row = 0;             // C[i,j] is c[i * c_row + j]; C overlaps no operand except bias in place
  int64_t bias_row = 0,
          bias_col = 1;        // bias[i * bias_row + j * bias_col]: row vector (0, 1), column (1, 0), scalar (0, 0)
  double alpha = 1, beta = 1;  // beta scales bias; converted to the element type
  bool b_packed = false;       // run_gemm is given what pack_b wrote, not B itself
  // Panels hold B rounded to float16, which every step widens again; sums stay f32. Only for b_packed, f32 and
  // n > kGemmDotColumns (ignored otherwise), and for a B whose elements are at most 65504 in magnitude.
  bool b_half = false;
  // Panels hold bytes, and a float for each column that they are multiplied by: the products are those of the floats
  // that this gives. Only for b_packed, f32 and n > kGemmDotColumns (ignored otherwise); pack_b is given ByteColumns.
  bool b_bytes = false;
  // At the very end, floats only: Relu is (0, inf). NaN stays NaN.
  float low = -__builtin_inff(), high = __builtin_inff();
};

inline constexpr int64_t kGemmDotColumns = 2, kGemmShortDot = 64;
inline constexpr size_t kKernelAlignment = 64;  // of packed operands and of scratch; other pointers need none

// Where pack_b puts the elements of B, for code that reads them without run_gemm (jit/row_product.h). Counts elements.
// Panels of `columns` columns lie one behind the other, each row by row; the last one is filled up.
struct GemmPanels {
  int64_t columns = 0;  // 0: packed in a way that only run_gemm knows
  int64_t rows = 0;     // of B
  constexpr int64_t place(int64_t row, int64_t column) const {
    return column / columns * panel() + row * columns + column % columns;
  }
  constexpr int64_t panel() const { return columns * rows; }
};

// B as bytes: B[p,j] is the float of bytes[p * b_row + j * b_col], times scales[j * scale_step].
struct ByteColumns {
  const void* bytes = nullptr;
  // 0x80: uint8 of which 128 is the middle; 0: int8.
  uint8_t flipped_bits = 0;
  const float* scales = nullptr;
  int64_t scale_step = 0;  // 0: one scale for all columns, 1: one for each
};

struct GemmPlan;
struct GemmWalk;  // isa/gemm/walk.h
// Rows [row_begin, row_end), columns [column_begin, column_end) of C.
struct GemmRange {
  int64_t row_begin, row_end, column_begin, column_end;
};
struct GemmOperands {
  const void* a;
  const void* b;     // B, or packed B
  const void* bias;  // may be null: none
  void* c;
  void* scratch;                 // plan.scratch_bytes, one per thread
  const void* addend = nullptr;  // floats only; lies like c; null: nothing
  // Packed B is read from its last columns to its first: what a run in the other order has read last is still in a
  // cache that B is too large for. Results do not depend on it.
  bool backward = false;
};
using GemmRun = void (*)(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range);
using GemmPack = void (*)(const GemmPlan& plan, const void* b, void* packed, StopPoll& stop);

// Plain data: copied freely, owns nothing.
struct GemmPlan {
  GemmShape shape;
  std::string_view walk;     // the name of the walk for shape.m rows; other numbers of rows may take another one
  std::string_view packing;  // plans with one packing, k, n and strides of B pack alike
  ComputeType type = ComputeType::kF32;
  int32_t column_step = 1;  // splitting columns at multiples of this loses no speed
  size_t scratch_bytes = 0;
  size_t packed_b_bytes = 0;
  bool alternates = false;  // with few rows, runs one after the other gain from changing direction (GemmOperands)
  GemmPanels panels;
  // The sizes of the blocks of walks that go through a product in blocks: steps, rows of A, panels of a B that is not
  // packed. `blocks_rows`: the scratch has room to copy a block of rows of A.
  int64_t block_steps = 0, block_rows = 0, block_panels = 1;
  bool blocks_rows = false;
  const GemmWalk* wanted = nullptr;  // taken for all numbers of rows that it fits; null: none
  GemmRun run = nullptr;
  GemmPack pack = nullptr;
};

// The walks of the instruction set in use, by name. src/kernels/README.md
std::vector<std::string_view> gemm_walks();
struct GemmWalkChoice {
  using Value = std::string_view;  // empty: none
  static Value of_process();       // TREADLE_GEMM
};
// Makes prepare_gemm on the calling thread take the walk of this name wherever it fits, for tests and benchmarks.
// TREADLE_GEMM does so for all threads.
using ScopedGemmWalk = ScopedChoice<GemmWalkChoice>;

// `type` is one of kF32, kF64, kI32, kU32, kI64, kU64. m is only a hint: a plan runs any number of rows
// (run_gemm_rows).
GemmPlan prepare_gemm(ComputeType type, const GemmShape& shape);

// The estimated time to pack an element into memory that is fresh from the system.
inline constexpr double kPackedNs = 1;
// The estimated time of a multiply-add.
inline constexpr double kProductNs = 0.05;

// B with the strides of the shape, or ByteColumns -> plan.packed_b_bytes, as plan.panels says. Like all packing it ends
// early where it is told to stop; was_stopped() then says that what it has written is of no use. `stop` counts from
// matrix to matrix.
inline void pack_b(const GemmPlan& plan, const void* b, void* packed, StopPoll& stop) {
  plan.pack(plan, b, packed, stop);
}
inline void pack_b(const GemmPlan& plan, const void* b, void* packed) {
  StopPoll stop;
  plan.pack(plan, b, packed, stop);
}

inline void run_gemm_range(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
  plan.run(plan, operands, range);
}
// The first `rows` rows, whatever shape.m says.
inline void run_gemm_rows(const GemmPlan& plan, int64_t rows, const void* a, const void* b, const void* bias, void* c,
                          void* scratch) {
  plan.run(plan, {a, b, bias, c, scratch}, {0, rows, 0, plan.shape.n});
}
inline void run_gemm(const GemmPlan& plan, const void* a, const void* b, const void* bias, void* c, void* scratch) {
  run_gemm_rows(plan, plan.shape.m, a, b, bias, c, scratch);
}

}  // namespace treadle::kernels
