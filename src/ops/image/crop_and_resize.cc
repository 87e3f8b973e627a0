// CropAndResize: resizes regions of images to one size. Corners of a region map to corners of its result.

#include <cmath>

#include "kernels/convert.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/refused_element.h"
#include "ops/costs.h"

namespace treadle {

namespace {

enum Input : size_t { kImages, kRegions, kBatch, kSize };

Status check_shapes(const InferContext& ctx) {
  const Shape *x = ctx.shape(kImages), *regions = ctx.shape(kRegions), *batch = ctx.shape(kBatch);
  if (x && x->size() != 4) return error(Code::kInvalidArgument, "X has shape {}, expected [N,C,H,W]", to_string(*x));
  if (regions && (regions->size() != 2 || differ((*regions)[1], Dim(4)))) {
    return error(Code::kInvalidArgument, "rois have shape {}, expected [regions,4]", to_string(*regions));
  }
  if (batch && (batch->size() != 1 || (regions && differ((*batch)[0], (*regions)[0])))) {
    return error(Code::kInvalidArgument, "batch_indices have shape {}, expected one for each of rois {}",
                 to_string(*batch), regions ? to_string(*regions) : "?");
  }
  if (const Dim count = length_of(ctx, kSize); differ(count, Dim(2))) {
    return error(Code::kInvalidArgument, "crop_size has {} elements, expected 2: height and width", count.value());
  }
  return {};
}

Status infer_crop(InferContext& ctx) {
  const std::string_view mode = ctx.attributes().get_string("mode");
  if (mode != "bilinear" && mode != "nearest") {
    return error(Code::kInvalidModel, "attribute mode is '{}', expected 'bilinear' or 'nearest'", mode);
  }
  TREADLE_TRY(check_shapes(ctx));
  const Shape *x = ctx.shape(kImages), *regions = ctx.shape(kRegions), *batch = ctx.shape(kBatch);
  Dim count = regions ? (*regions)[0] : Dim();
  if (!count.is_known() && batch) count = (*batch)[0];
  Shape out{std::move(count), x ? (*x)[1] : Dim(), Dim(), Dim()};
  if (const Tensor* size = ctx.value(kSize)) {
    for (size_t i = 0; i < 2; ++i) {
      const int64_t given = size->int64_at(static_cast<int64_t>(i));
      if (given < 1) return error(Code::kInvalidArgument, "crop_size holds {}, expected 1 or more", given);
      out[2 + i] = Dim(given);
    }
  }
  ctx.set_output(0, ctx.element(kImages), std::move(out));
  return {};
}

struct Crops {
  int64_t regions = 0, images = 0, channels = 0;
  int64_t size[2] = {}, out_size[2] = {};  // height, width
  float outside = 0;
  bool nearest = false;
  ElementType type{};
  kernels::TileConverter widen, narrow;  // to float, and back
};

// The position of element `at` of `count` between `from` and `to`, which are shares of an axis. A single element is in
// the middle.
float position(float from, float to, int64_t at, int64_t count, int64_t size) {
  const auto last = static_cast<float>(size - 1);
  if (count == 1) return 0.5f * (from + to) * last;
  if (at == count - 1) return to * last;
  const float step = (to - from) * last / static_cast<float>(count - 1);
  return from * last + static_cast<float>(at) * step;
}

bool is_inside(float at, int64_t size) {
  return at >= 0 && at <= static_cast<float>(size - 1);
}

template <class T>
class Cropper {
 public:
  Cropper(const Crops& crops, const T* images) : s_(crops), images_(images) {}

  // All channels of one element of a result; channels are `plane` elements apart.
  void element(const T* image, float y, float x, T* out, int64_t plane) const {
    if (!is_inside(y, s_.size[0]) || !is_inside(x, s_.size[1])) {
      for (int64_t c = 0; c < s_.channels; ++c) out[c * plane] = narrow(s_.outside);
      return;
    }
    for (int64_t c = 0; c < s_.channels; ++c, image += s_.size[0] * s_.size[1]) {
      out[c * plane] = s_.nearest ? image[place(std::round(y), std::round(x))] : narrow(between(image, y, x));
    }
  }

  const T* image(int32_t index) const { return images_ + index * s_.channels * s_.size[0] * s_.size[1]; }
  float wide(T value) const {
    float to;
    kernels::convert(s_.widen, &value, &to, 1);
    return to;
  }

 private:
  T narrow(float value) const {
    T to;
    kernels::convert(s_.narrow, &value, &to, 1);
    return to;
  }
  int64_t place(float y, float x) const { return static_cast<int64_t>(y) * s_.size[1] + static_cast<int64_t>(x); }
  float between(const T* image, float y, float x) const {
    const float top = std::floor(y), bottom = std::ceil(y), left = std::floor(x), right = std::ceil(x);
    const auto row = [&](float at) {
      const float a = wide(image[place(at, left)]), b = wide(image[place(at, right)]);
      return a + (b - a) * (x - left);
    };
    const float above = row(top), below = row(bottom);
    return above + (below - above) * (y - top);
  }

  const Crops& s_;
  const T* images_;
};

template <class T>
uint32_t run_crop(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const Crops*>(state);
  const Cropper<T> crop(s, static_cast<const T*>(slots[operands[kImages]]));
  const auto* regions = static_cast<const T*>(slots[operands[kRegions]]);
  const auto* batch = static_cast<const int32_t*>(slots[operands[kBatch]]);
  auto* out = static_cast<T*>(slots[operands[4]]);
  const int64_t height = s.out_size[0], width = s.out_size[1], plane = height * width;
  const double row_ns = costs::kCropElementNs * static_cast<double>(s.channels * width);
  for (int64_t r = 0; r < s.regions; ++r) {
    if (batch[r] < 0 || batch[r] >= s.images) return refuse_element({"batch_indices", r}, batch[r], 0, s.images - 1);
  }
  return parallel_kernel(s.regions * height, row_ns, [&](int64_t begin, int64_t end, int) -> uint32_t {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t r = row / height, i = row % height;
      float corner[4];
      for (int64_t k = 0; k < 4; ++k) corner[k] = crop.wide(regions[4 * r + k]);
      const float y = position(corner[0], corner[2], i, height, s.size[0]);
      T* to = out + r * s.channels * plane + i * width;
      for (int64_t j = 0; j < width; ++j) {
        crop.element(crop.image(batch[r]), y, position(corner[1], corner[3], j, width, s.size[1]), to + j, plane);
      }
    }
    return 0;
  });
}

Status prepare_crop(PrepareContext& ctx) {
  auto* s = ctx.make_state<Crops>();
  const Operand& x = ctx.inputs[kImages];
  const Dims& y = ctx.outputs[0].dims;
  s->regions = y[0];
  s->images = x.dims[0];
  s->channels = x.dims[1];
  for (size_t i = 0; i < 2; ++i) s->size[i] = x.dims[2 + i], s->out_size[i] = y[2 + i];
  s->outside = ctx.attributes().get_float("extrapolation_value");
  s->nearest = ctx.attributes().get_string("mode") == "nearest";
  s->type = x.type;
  s->widen = kernels::make_converter(x.type, ElementType::kFloat);
  s->narrow = kernels::make_converter(ElementType::kFloat, x.type);
  KernelFn run = run_crop<float>;
  if (x.type == ElementType::kDouble) run = run_crop<double>;
  if (x.type == ElementType::kFloat16) run = run_crop<uint16_t>;
  ctx.cost_ns = costs::kCropElementNs * static_cast<double>(ctx.outputs[0].element_count());
  ctx.set_kernel(run, s);
  return {};
}

// Channels of the images are independent, and so are regions.
Status crop_axes(AxisContext& c) {
  if (!c.runs_along(kImages)) return axes::entries_of<0b110>(c);
  TREADLE_TRY(axes::only_first(c));
  return c.in(kImages) == 1 ? c.give(0, 1) : looks_along("its regions lie across it");
}

}  // namespace

}  // namespace treadle

TREADLE_OP(CropAndResize, "com.microsoft") {
  op.since(1)
      .in("X", "T1")
      .in("rois", "T1")
      .in("batch_indices", "T2")
      .in("crop_size", "T2")
      .out("Y", "T1")
      .attr("extrapolation_value", 0.0)
      .attr("mode", "bilinear")
      .type("T1", types::kFloats)
      .type("T2", types::kInt32s);
  op.infer(infer_crop).prepare(prepare_crop).shape_inputs({3}).can_fail().axes(crop_axes);
}
