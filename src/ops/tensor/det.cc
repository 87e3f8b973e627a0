// Det and Inverse, both by Gaussian elimination with row pivoting in double precision.

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/convert.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "ops/costs.h"

namespace treadle {
namespace {

Status check_square(const Shape& shape) {
  const size_t rank = shape.size();
  const bool square = rank >= 2 && (!shape[rank - 1].is_known() || !shape[rank - 2].is_known() ||
                                    same(shape[rank - 1], shape[rank - 2]));
  if (square) return {};
  return error(Code::kInvalidArgument, "X has shape {}, expected square matrices [...,M,M]", to_string(shape));
}

Status infer_det(InferContext& c) {
  const Shape* shape = c.shape(0);
  if (!shape) return c.set_output(0, c.element(0)), Status();
  TREADLE_TRY(check_square(*shape));
  c.set_output(0, c.element(0), Shape(shape->begin(), shape->end() - 2));
  return {};
}

Status infer_inverse(InferContext& c) {
  if (const Shape* shape = c.shape(0)) TREADLE_TRY(check_square(*shape));
  return infer_same_as_first(c);
}

struct MatrixState {
  int64_t matrices = 0, n = 0;
  ElementType type{};
};

// Brings the row with the largest element of column k, of those from k on, to row k. Rows have `width` elements.
// Whether two rows changed places.
bool bring_pivot(double* a, int64_t n, int64_t width, int64_t k) {
  int64_t pivot = k;
  for (int64_t i = k + 1; i < n; ++i) {
    if (std::abs(a[i * width + k]) > std::abs(a[pivot * width + k])) pivot = i;
  }
  if (pivot == k) return false;
  std::swap_ranges(a + k * width, a + (k + 1) * width, a + pivot * width);
  return true;
}

// Takes as much of row k from row i as makes column k zero, which is not written.
void eliminate(double* a, int64_t width, int64_t k, int64_t i) {
  const double factor = a[i * width + k] / a[k * width + k];
  for (int64_t j = k + 1; j < width; ++j) a[i * width + j] -= factor * a[k * width + j];
}

// The product of the pivots; destroys `a`.
double determinant(double* a, int64_t n, StopPoll& stop) {
  double product = 1;
  for (int64_t k = 0; k < n; ++k) {
    if (stop.after(costs::kDetElementNs * static_cast<double>(n - k))) return product;
    if (bring_pivot(a, n, n, k)) product = -product;
    product *= a[k * n + k];
    if (a[k * n + k] == 0) return product;
    for (int64_t i = k + 1; i < n && !stop.after(costs::kDetElementNs * static_cast<double>(n - k)); ++i)
      eliminate(a, n, k, i);
  }
  return product;
}

// The right half of the rows [A, 1] becomes the inverse: infinities and NaNs where there is none. Column k of A stays
// as the rows above it have it, since nothing reads it any more.
void invert(double* a, int64_t n, StopPoll& stop) {
  const int64_t width = 2 * n;
  for (int64_t k = 0; k < n; ++k) {
    bring_pivot(a, n, width, k);
    for (int64_t i = 0; i < n; ++i) {
      if (stop.after(costs::kDetElementNs * static_cast<double>(width - k))) return;
      if (i != k) eliminate(a, width, k, i);
    }
    const double pivot = a[k * width + k];
    for (int64_t j = k; j < width; ++j) a[k * width + j] /= pivot;
  }
}

uint32_t run_det(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const MatrixState*>(state);
  const auto* in = static_cast<const char*>(slots[operands[0]]);
  auto* out = static_cast<char*>(slots[operands[1]]);
  auto* matrix = static_cast<double*>(slots[operands[2]]);
  const auto elements = static_cast<size_t>(s.n * s.n), width = byte_width(s.type);
  const kernels::TileConverter widen = kernels::make_converter(s.type, ElementType::kDouble);
  StopPoll stop;
  for (int64_t m = 0; m < s.matrices; ++m, in += elements * width, out += width) {
    parallel_convert(widen, in, matrix, elements);
    const double value = determinant(matrix, s.n, stop);
    kernels::cast(ElementType::kDouble, s.type, &value, out, 1);
    if (stop.after(costs::kDetMatrixNs)) return fail(KernelError::kStopped);
  }
  return 0;
}

uint32_t run_inverse(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const MatrixState*>(state);
  const auto* in = static_cast<const char*>(slots[operands[0]]);
  auto* out = static_cast<char*>(slots[operands[1]]);
  auto* rows = static_cast<double*>(slots[operands[2]]);
  const auto n = static_cast<size_t>(s.n), width = byte_width(s.type);
  const kernels::TileConverter widen = kernels::make_converter(s.type, ElementType::kDouble);
  const kernels::TileConverter narrow = kernels::make_converter(ElementType::kDouble, s.type);
  StopPoll stop;
  for (int64_t m = 0; m < s.matrices; ++m, in += n * n * width, out += n * n * width) {
    for (size_t i = 0; i < n; ++i) {
      double* row = rows + i * 2 * n;
      kernels::convert(widen, in + i * n * width, row, n);
      std::fill_n(row + n, n, 0.0);
      row[n + i] = 1;
    }
    invert(rows, s.n, stop);
    for (size_t i = 0; i < n; ++i) kernels::convert(narrow, rows + i * 2 * n + n, out + i * n * width, n);
    if (stop.after(costs::kDetMatrixNs)) return fail(KernelError::kStopped);
  }
  return 0;
}

Status prepare_inverse(PrepareContext& c) {
  const Operand& x = c.inputs[0];
  const int64_t n = x.dims.back(), matrices = n == 0 ? 0 : x.element_count() / (n * n);
  c.cost_ns = static_cast<double>(matrices) *
              (costs::kDetMatrixNs + costs::kDetElementNs * static_cast<double>(n * n) * static_cast<double>(n));
  c.scratch_bytes = static_cast<size_t>(2 * n * n) * sizeof(double);
  c.set_kernel(run_inverse, c.make_state<MatrixState>(MatrixState{matrices, n, x.type}));
  return {};
}

Status prepare_det(PrepareContext& c) {
  const int64_t n = c.inputs[0].dims.back();
  c.scratch_bytes = static_cast<size_t>(n * n) * sizeof(double);
  c.set_kernel(run_det, c.make_state<MatrixState>(MatrixState{c.outputs[0].element_count(), n, c.inputs[0].type}));
  return {};
}

Status matrix_axes(AxisContext& c) {
  if (c.in(0) >= c.rank(0) - 2) return looks_along("it runs along rows or columns of its matrices");
  return c.give(0, c.in(0));
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Det, "") {
  op.since(11).in("X", "T").out("Y", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_det).prepare(prepare_det).axes(matrix_axes, axes::unchanged);
}

TREADLE_OP(Inverse, "com.microsoft") {
  op.since(1).in("X", "T").out("Y", "T").type("T", types::kFloats);
  op.infer(infer_inverse).prepare(prepare_inverse).axes(matrix_axes, axes::unchanged);
}
