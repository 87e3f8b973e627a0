#pragma once
// Reduction kernels of one instruction set. Accumulators are wide: double for floats, 64 bits for integers, a byte for
// bool.

#include <cstddef>
#include <cstdint>

#include "type/element_type.h"

namespace treadle::kernels {

// The accumulated term. kExp and kCenteredSquare take a shift of the compute type: exp(x - shift), (x - shift)^2.
enum class Term : uint8_t { kSum, kAbs, kSquare, kMax, kMin, kProd, kExp, kCenteredSquare };
inline constexpr int kTermCount = 8;

struct ReduceTable {
  // Adds n contiguous elements to *accumulator.
  using Row = void (*)(const void* x, size_t n, void* accumulator, const void* shift);
  // Adds column c of [rows, columns] to accumulator[c]. The shift, if used, has one element per column.
  using Columns = void (*)(const void* x, int64_t row_stride, size_t rows, size_t columns, void* accumulator,
                           const void* shift);
  Row row[kTermCount][kComputeTypeCount];
  Columns columns[kTermCount][kComputeTypeCount];
  // out[r] = row r of [rows, n] reduced, 1 <= n <= kReduceBlock, in the compute type. For floats, and terms without a
  // shift.
  void (*rows[kTermCount][kComputeTypeCount])(const void* x, size_t rows, size_t n, void* out);
  // out[r] = the index of the least ([0]) or greatest ([1]) element of row r, n >= 1. Not for bools.
  void (*extreme_rows[2][kComputeTypeCount])(const void* x, size_t rows, size_t n, int64_t* out, bool select_last);
  // Continues a search down columns. Rows are `stride` elements apart and numbered from `first` on. best[c] is the
  // extreme of column c so far, out[c] the number of its row.
  void (*extreme_columns[2][kComputeTypeCount])(const void* x, size_t stride, size_t rows, size_t columns,
                                                int64_t first, void* best, int64_t* out, bool select_last);

  // y[i] = exp(x[i] - *shift), added to *accumulator. f32 and f64.
  void (*exp_row[2])(const void* x, const void* shift, void* y, size_t n, double* accumulator);
  // Softmax ([0]) or its logarithm ([1]) of rows of n elements, 1 <= n <= kReduceBlock; f32 and f64. The operations and
  // their order are those of a row that is processed piece by piece (normalize.cc).
  void (*softmax_rows[2][2])(const void* x, void* y, size_t rows, size_t n);
  // y[i] = (x[i] - *mean) * *inv_std, multiplied by scale[i] and added to bias[i] where these are not null. f32 and
  // f64.
  void (*norm_row[2])(const void* x, const void* mean, const void* inv_std, const void* scale, const void* bias,
                      void* y, size_t n);
};

}  // namespace treadle::kernels
