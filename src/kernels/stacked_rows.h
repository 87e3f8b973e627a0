#pragma once
// Single rows times matrices, for many matrices in sequence: heads of attention at one position. Each element of a
// result is one chain over k from zero on, as in products (kernels/gemm.h). Chains of several matrices run side by side
// if one matrix has too few columns to keep the processor busy.

#include <cstdint>

#include "type/element_type.h"

namespace treadle::kernels {

// c[i][j] = sum over p < k of a[i][p] * b[i][p][j]. Strides are in elements.
struct StackedRows {
  int64_t count = 1;            // number of matrices
  int64_t a = 0, b = 0, c = 0;  // strides from one matrix to the next
  int64_t k = 0, n = 0;
  int64_t a_col = 1, b_row = 0;  // columns of B and of C are contiguous
};

// `a`, `b`, `c`: of the first matrix.
using StackedRowsRun = void (*)(const StackedRows& rows, const void* a, const void* b, void* c);

// For preferred_isa(). `type`: as for prepare_gemm.
StackedRowsRun stacked_rows(ComputeType type);

}  // namespace treadle::kernels
