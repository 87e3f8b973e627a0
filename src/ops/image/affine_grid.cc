// AffineGrid: the positions that an affine map assigns to the points of an image, as input of GridSample.

#include <algorithm>

#include "kernels/convert.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/rank.h"
#include "ops/costs.h"
#include "ops/image/grid_arithmetic.h"

namespace treadle {
namespace {

Status infer_affine_grid(InferContext& c) {
  const auto size = c.dims_value(1);
  if (!size) {
    const Dim length = dimensions_listed(c, 1);
    if (length.is_known() && length.value() >= 4) {
      Shape out = unknown_shape(static_cast<size_t>(length.value()));
      out.back() = Dim(length.value() - 2);
      c.set_output(0, c.element(0), std::move(out));
    } else {
      c.set_output(0, c.element(0));
    }
    return {};
  }
  if (size->size() != 4 && size->size() != 5) {
    return error(Code::kInvalidArgument, "size has {} elements, expected 4 or 5", size->size());
  }
  const auto rank = static_cast<int64_t>(size->size()) - 2;
  const Shape* theta = c.shape(0);
  if (theta && (theta->size() != 3 || ((*theta)[1].is_known() && !(*theta)[1].is_known(rank)) ||
                ((*theta)[2].is_known() && !(*theta)[2].is_known(rank + 1)))) {
    return error(Code::kInvalidArgument, "theta has shape {}, expected [N,{},{}]", to_string(*theta), rank, rank + 1);
  }
  Shape out{(*size)[0]};
  for (size_t i = 2; i < size->size(); ++i) out.push_back((*size)[i]);
  out.emplace_back(rank);
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

struct AffineState {
  int64_t batches = 0, rank = 0, points = 1;
  int64_t dims[3] = {};
  bool align_corners = false;
  ElementType type{};
  kernels::TileConverter narrow;  // from double
};

double coordinate(const AffineState& s, int64_t i, int64_t size) {
  return image_ops::grid_coordinate(i, size, s.align_corners);
}

// Computes points [begin, end) of one matrix, in runs along the innermost axis. Each coordinate is one sum, which
// begins with the innermost coordinate.
template <int kRank>
void grid_points(const AffineState& s, const double* matrix, int64_t begin, int64_t end, char* out) {
  constexpr int64_t kPoints = 128;
  const int64_t inner = s.dims[kRank - 1];
  double inner_at[kPoints], images[kRank * kPoints];
  int64_t known_column = 0, known = 0;  // columns of `coordinates` that are valid: those of one row serve the next
  while (begin < end) {
    const int64_t column = begin % inner, count = std::min({kPoints, inner - column, end - begin});
    if (column != known_column || count > known) {
      for (int64_t i = 0; i < count; ++i) inner_at[i] = coordinate(s, column + i, inner);
      known_column = column, known = count;
    }
    double terms[kRank][kRank];  // of the other coordinates and the 1
    int64_t rest = begin / inner;
    for (int d = 1; d <= kRank; ++d) {
      const int64_t size = d < kRank ? s.dims[kRank - 1 - d] : 1;
      const double at = d < kRank ? coordinate(s, rest % size, size) : 1;
      for (int r = 0; r < kRank; ++r) terms[r][d - 1] = matrix[r * (kRank + 1) + d] * at;
      rest /= size;
    }
    for (int r = 0; r < kRank; ++r) {
      const double slope = matrix[r * (kRank + 1)];
      for (int64_t i = 0; i < count; ++i) {
        double image = 0 + slope * inner_at[i];
        for (int d = 0; d < kRank; ++d) image += terms[r][d];
        images[i * kRank + r] = image;
      }
    }
    kernels::convert(s.narrow, images, out, static_cast<size_t>(count * kRank));
    out += static_cast<size_t>(count * kRank) * byte_width(s.type);
    begin += count;
  }
}

uint32_t run_affine_grid(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const AffineState*>(state);
  const auto* theta = static_cast<const char*>(slots[operands[0]]);
  auto* out = static_cast<char*>(slots[operands[2]]);
  const auto terms = static_cast<size_t>(s.rank * (s.rank + 1));
  const int64_t point = s.rank * static_cast<int64_t>(byte_width(s.type));
  const auto points = s.rank == 2 ? grid_points<2> : grid_points<3>;
  parallel_for(s.batches * s.points, costs::kAffineGridPointNs, [&](int64_t begin, int64_t end, int) {
    while (begin < end) {
      const int64_t batch = begin / s.points, first = batch * s.points, last = std::min(end, first + s.points);
      double matrix[12];
      kernels::cast(s.type, ElementType::kDouble, theta + static_cast<size_t>(batch) * terms * byte_width(s.type),
                    matrix, terms);
      points(s, matrix, begin - first, last - first, out + begin * point);
      begin = last;
    }
  });
  return 0;
}

Status prepare_affine_grid(PrepareContext& c) {
  const Operand& out = c.outputs[0];
  if (c.inputs[0].dims[0] != out.dims[0]) {
    return error(Code::kInvalidArgument,
                 "theta holds {} matrices, expected one for each entry of the batch that size states: {}",
                 c.inputs[0].dims[0], out.dims[0]);
  }
  auto* s = c.make_state<AffineState>();
  s->batches = out.dims[0];
  s->rank = out.rank() - 2;
  for (int64_t d = 0; d < s->rank; ++d) s->points *= s->dims[d] = out.dims[static_cast<size_t>(d) + 1];
  s->align_corners = c.attributes().get_int("align_corners", 0) != 0;
  s->type = out.type;
  s->narrow = kernels::make_converter(ElementType::kDouble, s->type);
  c.set_kernel(run_affine_grid, s);
  return {};
}

}  // namespace
}  // namespace treadle

TREADLE_OP(AffineGrid, "") {
  op.since(20)
      .in("theta", "T1")
      .in("size", "T2")
      .out("grid", "T1")
      .attr("align_corners", 0)
      .type("T1", types::kFloatsBf16)
      .type("T2", types::kInt64s);
  op.infer(infer_affine_grid)
      .prepare(prepare_affine_grid)
      .shape_inputs({1})
      .no_axes("its sizes say how many entries there are");
}
