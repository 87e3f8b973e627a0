#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/convert.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"

namespace treadle {
namespace {

Status infer_det(InferContext& c) {
  const Shape* shape = c.shape(0);
  if (!shape) return c.set_output(0, c.element(0)), Status();
  const size_t rank = shape->size();
  const bool square = rank >= 2 && (!(*shape)[rank - 1].is_known() || !(*shape)[rank - 2].is_known() ||
                                    same((*shape)[rank - 1], (*shape)[rank - 2]));
  if (!square) return error(Code::kInvalidArgument, "expected square matrices, found shape {}", to_string(*shape));
  c.set_output(0, c.element(0), Shape(shape->begin(), shape->end() - 2));
  return {};
}

struct DetState {
  int64_t matrices = 0, n = 0;
  ElementType type{};
};

constexpr double kElementNs = 0.5, kMatrixNs = 50;

// Product of the pivots of Gaussian elimination with row pivoting; destroys `a`.
double determinant(double* a, int64_t n, StopPoll& stop) {
  double product = 1;
  for (int64_t k = 0; k < n; ++k) {
    if (stop.after(kElementNs * static_cast<double>(n - k))) return product;
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    }
    if (pivot != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
      product = -product;
    }
    product *= a[k * n + k];
    if (a[k * n + k] == 0) return product;
    for (int64_t i = k + 1; i < n && !stop.after(kElementNs * static_cast<double>(n - k)); ++i) {
      const double factor = a[i * n + k] / a[k * n + k];
      for (int64_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return product;
}

uint32_t run_det(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const DetState*>(state);
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
    if (stop.after(kMatrixNs)) return fail(KernelError::kStopped);
  }
  return 0;
}

Status prepare_det(PrepareContext& c) {
  const int64_t n = c.inputs[0].dims.back();
  c.scratch_bytes = static_cast<size_t>(n * n) * sizeof(double);
  c.set_kernel(run_det, c.make_state<DetState>(DetState{c.outputs[0].element_count(), n, c.inputs[0].type}));
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
