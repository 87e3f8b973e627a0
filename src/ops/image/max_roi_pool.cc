// MaxRoiPool: the largest element of each bin of regions of images.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/convert.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "op/refused_element.h"
#include "ops/costs.h"

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
  kernels::TileConverter widen, narrow;  // to double, and back
  uint32_t scratch = 0;                  // operand number; for bins, a line, and a row
};

// Bin i of `count` over [start, start + length), clipped to [0, size). The bounds are computed in integers: with
// floating point, a bin could end behind the region if length / count is not exact.
struct Span {
  int64_t begin, end;
};
Span bin(int64_t i, int64_t count, int64_t start, int64_t length, int64_t size) {
  const int64_t begin = i * length / count + start, end = ((i + 1) * length + count - 1) / count + start;
  return {std::clamp<int64_t>(begin, 0, size), std::clamp<int64_t>(end, 0, size)};
}

// NaN does not replace a number, as in onnxruntime.
template <class T>
T larger(T a, T b) {
  return b > a ? b : a;
}

// `count` elements of a plane from `at` on: floats in place, other types as doubles in `room`.
const float* elements(const MaxRoiState&, const std::byte* plane, int64_t at, int64_t, float*) {
  return reinterpret_cast<const float*>(plane) + at;
}
const double* elements(const MaxRoiState& s, const std::byte* plane, int64_t at, int64_t count, double* room) {
  constexpr auto kMost = static_cast<int64_t>(kernels::kTile);
  for (int64_t i = 0; i < count; i += kMost) {
    const auto n = static_cast<size_t>(std::min(count - i, kMost));
    kernels::convert(s.widen, plane + static_cast<size_t>(at + i) * byte_width(s.type), room + i, n);
  }
  return room;
}

// The largest element of each column within a row of bins. There is room for a row behind the line.
template <class T>
bool largest_of_columns(const MaxRoiState& s, const std::byte* plane, Span rows, Span columns, T* line,
                        StopPoll& stop) {
  const int64_t count = columns.end - columns.begin;
  std::fill_n(line, count, -std::numeric_limits<T>::infinity());
  for (int64_t y = rows.begin; y < rows.end; ++y) {
    if (stop.after(costs::kMaxRoiElementNs * static_cast<double>(count))) return false;
    const T* row = elements(s, plane, y * s.width + columns.begin, count, line + count);
    for (int64_t x = 0; x < count; ++x) line[x] = larger(line[x], row[x]);
  }
  return true;
}

void put(const MaxRoiState&, float value, std::byte* out) {
  std::memcpy(out, &value, sizeof value);
}
void put(const MaxRoiState& s, double value, std::byte* out) {
  kernels::convert(s.narrow, &value, out, 1);
}

// One region of a plane; an empty bin gives 0.
template <class T>
bool pool_plane(const MaxRoiState& s, const std::byte* plane, const Span* rows, const Span* columns, T* line,
                std::byte* out, StopPoll& stop) {
  const Span all = {columns[0].begin, columns[s.pooled_width - 1].end};
  const auto width = static_cast<int64_t>(byte_width(s.type));
  for (int64_t i = 0; i < s.pooled_height; ++i) {
    if (!largest_of_columns(s, plane, rows[i], all, line, stop)) return false;
    for (int64_t j = 0; j < s.pooled_width; ++j, out += width) {
      const bool empty = rows[i].begin >= rows[i].end || columns[j].begin >= columns[j].end;
      T value = empty ? 0 : -std::numeric_limits<T>::infinity();
      for (int64_t x = columns[j].begin; x < columns[j].end && !empty; ++x) value = larger(value, line[x - all.begin]);
      put(s, value, out);
    }
    if (stop.after(costs::kMaxRoiBinNs * static_cast<double>(s.pooled_width))) return false;
  }
  return true;
}

// Bins of a region along one axis.
void set_bins(Span* bins, int64_t count, int64_t start, int64_t length, int64_t size) {
  for (int64_t i = 0; i < count; ++i) bins[i] = bin(i, count, start, length, size);
}

// Keeps coordinates far outside of any image outside.
int64_t rounded(double v) {
  return static_cast<int64_t>(std::clamp(std::round(std::isnan(v) ? 0 : v), -1e9, 1e9));
}

uint32_t run_max_roi_pool(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const MaxRoiState*>(state);
  const size_t width = byte_width(s.type);
  const auto* data = static_cast<const std::byte*>(slots[operands[0]]);
  const auto* rois = static_cast<const std::byte*>(slots[operands[1]]);
  auto* out = static_cast<std::byte*>(slots[operands[2]]);
  auto* bin_rows = static_cast<Span*>(slots[operands[s.scratch]]);
  auto* bin_columns = bin_rows + s.pooled_height;
  void* line = bin_columns + s.pooled_width;
  const auto bins = static_cast<size_t>(s.pooled_height * s.pooled_width);
  StopPoll stop;
  for (int64_t r = 0; r < s.rois; ++r) {
    double roi[5];
    kernels::convert(s.widen, rois + static_cast<size_t>(r) * 5 * width, roi, 5);
    const int64_t image = rounded(roi[0]);
    if (image < 0 || image >= s.images) return refuse_element({"rois", 5 * r}, image, 0, s.images - 1);
    const int64_t left = rounded(roi[1] * s.scale), top = rounded(roi[2] * s.scale);
    const int64_t columns = std::max<int64_t>(rounded(roi[3] * s.scale) - left + 1, 1);
    const int64_t rows = std::max<int64_t>(rounded(roi[4] * s.scale) - top + 1, 1);
    set_bins(bin_rows, s.pooled_height, top, rows, s.height);
    set_bins(bin_columns, s.pooled_width, left, columns, s.width);
    const auto plane_bytes = static_cast<size_t>(s.height * s.width) * width;
    const std::byte* plane = data + static_cast<size_t>(image * s.channels) * plane_bytes;
    for (int64_t c = 0; c < s.channels; ++c, plane += plane_bytes, out += bins * width) {
      const bool done = s.type == ElementType::kFloat
                            ? pool_plane(s, plane, bin_rows, bin_columns, static_cast<float*>(line), out, stop)
                            : pool_plane(s, plane, bin_rows, bin_columns, static_cast<double*>(line), out, stop);
      if (!done) return fail(KernelError::kStopped);
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
  s->widen = kernels::make_converter(s->type, ElementType::kDouble);
  s->narrow = kernels::make_converter(ElementType::kDouble, s->type);
  s->scratch = ctx.scratch_operand();
  ctx.scratch_bytes = static_cast<size_t>(s->pooled_height + s->pooled_width) * sizeof(Span) +
                      2 * static_cast<size_t>(s->width) * sizeof(double);
  ctx.set_kernel(run_max_roi_pool, s);
  return {};
}

// Channels of the image are independent, and so are regions.
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
