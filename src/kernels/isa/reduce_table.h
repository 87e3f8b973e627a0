#pragma once
// Reducing kernels of one instruction set. Accumulators are wide: double for floats, 64 bits for integers, a byte for
// bool.

#include <cstddef>
#include <cstdint>

#include "type/element_type.h"

namespace treadle::kernels {

// What is accumulated; Exp and CenteredSquare take a shift (of the compute type): exp(x - shift), (x - shift)^2.
enum class Term : uint8_t { kSum, kAbs, kSquare, kMax, kMin, kProd, kExp, kCenteredSquare };
inline constexpr int kTermCount = 8;

struct ReduceTable {
  // *accumulator takes in n contiguous elements.
  using Row = void (*)(const void* x, size_t n, void* accumulator, const void* shift);
  // accumulator[c] takes in column c of [rows, columns]; shift, where used, has one element per column.
  using Columns = void (*)(const void* x, int64_t row_stride, size_t rows, size_t columns, void* accumulator,
                           const void* shift);
  Row row[kTermCount][kComputeTypeCount];
  Columns columns[kTermCount][kComputeTypeCount];
  // out[r] = what is left of row r of [rows, n], 1 <= n <= kReduceBlock, in the compute type. Floats; not for terms
  // with a shift.
  void (*rows[kTermCount][kComputeTypeCount])(const void* x, size_t rows, size_t n, void* out);
  // out[r] = where the least ([0]) or greatest ([1]) of row r is, n >= 1. Not of bools.
  void (*extreme_rows[2][kComputeTypeCount])(const void* x, size_t rows, size_t n, int64_t* out, bool select_last);
  // Goes on through rows of columns, `stride` elements apart and numbered from `first` on: best[c] is the extreme of
  // column c so far, and out[c] the number of its row.
  void (*extreme_columns[2][kComputeTypeCount])(const void* x, size_t stride, size_t rows, size_t columns,
                                                int64_t first, void* best, int64_t* out, bool select_last);

  // y[i] = exp(x[i] - *shift), whose sum *accumulator takes in. f32 and f64.
  void (*exp_row[2])(const void* x, const void* shift, void* y, size_t n, double* accumulator);
  // Softmax ([0]) or its logarithm ([1]) of rows of n elements, 1 <= n <= kReduceBlock; f32 and f64. The operations and
  // their order are those of a row that is worked on piece by piece (normalize.cc).
  void (*softmax_rows[2][2])(const void* x, void* y, size_t rows, size_t n);
  // y[i] = (x[i] - *mean) * *inv_std, times scale[i] plus bias[i] where not null. f32 and f64.
  void (*norm_row[2])(const void* x, const void* mean, const void* inv_std, const void* scale, const void* bias,
                      void* y, size_t n);
};

}  // namespace treadle::kernels
