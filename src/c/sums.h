#pragma once
// Sums, products and extremes of rows as functions in C, in the order of kernels/sum_order.h.

#include <string>

#include "c/functions.h"
#include "kernels/reduce.h"

namespace treadle::c {

// The type in which elements of a block are combined, and that in which results of blocks are.
ElementType summed_type(kernels::ReduceOp op, ElementType type);
ElementType wide_sum(ElementType type);
// f(sum so far, x, n): combines n elements from x on, which are next to each other. f of columns: (sum so far, x, n,
// stride), elements `stride` apart. `type`: of the elements as they are stored. Of exponentials (kLogSumExp) both have
// a last parameter, which is taken from each element.
std::string row_function(Functions& functions, kernels::ReduceOp op, ElementType type);
std::string column_function(Functions& functions, kernels::ReduceOp op, ElementType type);
// f(sums, x, n, stride, m): the columns that begin at m neighbours, at most kColumns.
constexpr int64_t kColumns = 32;
std::string columns_function(Functions& functions, kernels::ReduceOp op, ElementType type);
// f(x, n): one block of at most kReduceBlock floats, summed in the order of a row.
std::string block_function(Functions& functions, ElementType type);
// The neutral element, in wide_sum(type).
std::string neutral(kernels::ReduceOp op, ElementType type);
// f(a, a_step, b, b_step, k): the dot product of k elements, in the order of kernels/gemm.h for few columns.
std::string dot_function(Functions& functions, ElementType type);
// f(a, a_row, a_col, b, b_row, c, c_row, m, n, k): a product of matrices of at least `m` rows, one chain over k for
// each element; rows of b and c are contiguous. From kProductRows on several rows share what is read of b.
constexpr int64_t kProductRows = 4;
std::string product_function(Functions& functions, ElementType type, int64_t m);
// f(x, step, rows, n, y, y_step): rows of n elements, `step` apart, become columns of rows that are `y_step` apart, in
// another type. So a product with rows has contiguous rows of b.
std::string columns_function(Functions& functions, ElementType from, ElementType to);
// f(x, y, exps, n): the softmax of a row; `exps` is room for n elements. With x, y and exps of one type, all may be
// one.
std::string softmax_function(Functions& functions, ElementType type);

}  // namespace treadle::c
