// MaxRoiPool: the largest elements of the bins that regions of images are divided into.

#include <algorithm>
#include <cmath>

#include "kernels/convert.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"

namespace treadle {

namespace {

Status infer_max_roi_pool(InferContext& ctx) {
  const auto pooled = ctx.attributes().get_ints("pooled_shape");
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1) {
    return error(Code::kInvalidModel, "attribute pooled_shape needs a height and a width of at least 1");
  }
  const Shape *x = ctx.shape(0), *rois = ctx.shape(1);
  if (x && x->size() != 4) return error(Code::kInvalidArgument, "X has shape {}, expected [N,C,H,W]", to_string(*x));
  if (rois && (rois->size() != 2 || differ((*rois)[1], Dim(5)))) {
    return error(Code::kInvalidArgument, "rois have shape {}, expected [regions,5]", to_string(*rois));
  }
  ctx.set_output(0, ctx.element(0), {rois ? (*rois)[0] : Dim(), x ? (*x)[1] : Dim(), Dim(pooled[0]), Dim(pooled[1])});
  return {};
}

struct MaxRoiState {
  int64_t images = 0, channels = 0, height = 0, width = 0, rois = 0;
  int64_t pooled_height = 1, pooled_width = 1;
  double scale = 1;
  ElementType type = ElementType::kFloat;
};

// Element i of `count` bins over [start, start + length), cut to [0, size).
struct Span {
  int64_t begin, end;
};
Span bin(int64_t i, int64_t count, int64_t start, int64_t length, int64_t size) {
  const double step = static_cast<double>(length) / static_cast<double>(count);
  const auto begin = static_cast<int64_t>(std::floor(static_cast<double>(i) * step)) + start;
  const auto end = static_cast<int64_t>(std::ceil(static_cast<double>(i + 1) * step)) + start;
  return {std::clamp<int64_t>(begin, 0, size), std::clamp<int64_t>(end, 0, size)};
}

constexpr double kBinNs = 50, kElementNs = 1;

double largest(const MaxRoiState& s, const std::byte* plane, Span rows, Span columns, StopPoll& stop) {
  double result = 0;  // of an empty bin
  bool first = true;
  double line[kernels::kTile];
  for (int64_t y = rows.begin; y < rows.end; ++y) {
    if (stop.after(kElementNs * static_cast<double>(columns.end - columns.begin))) return result;
    for (int64_t x = columns.begin; x < columns.end; x += static_cast<int64_t>(kernels::kTile)) {
      const auto n = static_cast<size_t>(std::min<int64_t>(columns.end - x, kernels::kTile));
      kernels::cast(s.type, ElementType::kDouble, plane + static_cast<size_t>(y * s.width + x) * byte_width(s.type),
                    line, n);
      for (size_t i = 0; i < n; ++i) result = first || line[i] > result ? line[i] : result, first = false;
    }
  }
  return result;
}

// Coordinates beyond any image stay beyond it.
int64_t rounded(double v) {
  return static_cast<int64_t>(std::clamp(std::round(std::isnan(v) ? 0 : v), -1e9, 1e9));
}

uint32_t run_max_roi_pool(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const MaxRoiState*>(state);
  const size_t width = byte_width(s.type);
  const auto* data = static_cast<const std::byte*>(slots[operands[0]]);
  const auto* rois = static_cast<const std::byte*>(slots[operands[1]]);
  auto* out = static_cast<std::byte*>(slots[operands[2]]);
  StopPoll stop;
  for (int64_t r = 0; r < s.rois; ++r) {
    double roi[5];
    kernels::cast(s.type, ElementType::kDouble, rois + static_cast<size_t>(r) * 5 * width, roi, 5);
    const int64_t image = rounded(roi[0]);
    if (image < 0 || image >= s.images) return fail(KernelError::kIndexOutOfRange, image, s.images);
    const int64_t left = rounded(roi[1] * s.scale), top = rounded(roi[2] * s.scale);
    const int64_t columns = std::max<int64_t>(rounded(roi[3] * s.scale) - left + 1, 1);
    const int64_t rows = std::max<int64_t>(rounded(roi[4] * s.scale) - top + 1, 1);
    for (int64_t c = 0; c < s.channels; ++c) {
      const std::byte* plane = data + static_cast<size_t>((image * s.channels + c) * s.height * s.width) * width;
      for (int64_t i = 0; i < s.pooled_height * s.pooled_width; ++i, out += width) {
        const double value = largest(s, plane, bin(i / s.pooled_width, s.pooled_height, top, rows, s.height),
                                     bin(i % s.pooled_width, s.pooled_width, left, columns, s.width), stop);
        kernels::cast(ElementType::kDouble, s.type, &value, out, 1);
        if (stop.after(kBinNs)) return fail(KernelError::kStopped);
      }
    }
  }
  return 0;
}

Status prepare_max_roi_pool(PrepareContext& ctx) {
  auto* s = ctx.make_state<MaxRoiState>();
  const Dims &x = ctx.inputs[0].dims, &out = ctx.outputs[0].dims;
  s->images = x[0];
  s->channels = x[1];
  s->height = x[2];
  s->width = x[3];
  s->rois = out[0];
  s->pooled_height = out[2];
  s->pooled_width = out[3];
  s->scale = static_cast<double>(ctx.attributes().get_float("spatial_scale", 1));
  s->type = ctx.inputs[0].type;
  ctx.set_kernel(run_max_roi_pool, s);
  return {};
}

// Channels of the picture, or regions.
Status region_axes(AxisContext& c) {
  if (!c.runs_along(0)) return axes::entries_of<0b10>(c);
  TREADLE_TRY(axes::only_first(c));
  return c.in(0) == 1 ? c.give(0, 1) : looks_along("its regions lie across it");
}

}  // namespace

}  // namespace treadle

TREADLE_OP(MaxRoiPool, "") {
  op.since(1)
      .in("X", "T")
      .in("rois", "T")
      .out("Y", "T")
      .required("pooled_shape", ir::AttributeKind::kInts)
      .attr("spatial_scale", 1.0)
      .type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_max_roi_pool).prepare(prepare_max_roi_pool).can_fail().axes(region_axes);
}
