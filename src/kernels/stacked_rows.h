#pragma once
// Single rows times matrices, many of them after one another: heads of attention that look back from one position. Each
// element of a result is one chain over k from zero on, as products make it (kernels/gemm.h), but chains of several
// matrices go on side by side where one matrix has too few columns to keep the processor busy.

#include <cstdint>

#include "type/element_type.h"

namespace treadle::kernels {

// c[i][j] = sum over p < k of a[i][p] * b[i][p][j]. In elements.
struct StackedRows {
  int64_t count = 1;            // of matrices
  int64_t a = 0, b = 0, c = 0;  // from one to the next
  int64_t k = 0, n = 0;
  int64_t a_col = 1, b_row = 0;  // columns of B and of C lie side by side
};

// `a`, `b`, `c`: the first of each.
using StackedRowsRun = void (*)(const StackedRows& rows, const void* a, const void* b, void* c);

// Of preferred_isa(); `type` as prepare_gemm takes it.
StackedRowsRun stacked_rows(ComputeType type);

}  // namespace treadle::kernels
