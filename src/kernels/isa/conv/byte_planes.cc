// 8-bit convolution with few filters in a group, as depthwise ones have: the planes of some groups become floats less
// their zero points, and a convolution of floats adds their products up. Each sum is a whole number below 2^24
// (sums_fit_floats), so it is exact, in whatever order products are added.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/in_pieces.h"
#include "kernels/byte_filters.h"
#include "kernels/conv.h"
#include "kernels/isa/conv/axes.h"
#include "kernels/isa/conv/byte_method.h"
#include "kernels/isa/entry.h"
#include "kernels/isa/qgemm_pack.h"
#include "kernels/isa/qgemm_store.h"
#include "kernels/quantize.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

const QuantizeKernels& quantize_kernels();

namespace {

// The convolution of some groups of one image.
ConvShape shape_of_planes(const ConvShape& all, int64_t groups) {
  ConvShape part = all;
  part.batch = 1;
  part.groups = groups;
  part.in_channels = all.in_channels / all.groups * groups;
  part.out_channels = all.out_channels / all.groups * groups;
  return part;
}

// Scratch: x, weights and y as floats, packed weights, the table and the scratch of the convolution of floats.
struct PlaneLayout {
  explicit PlaneLayout(const ConvShape& shape) {
    const ConvGeometry g(shape);
    const int64_t group_bytes = 4 * (g.in_per_group * g.in_channel() + g.out_per_group * g.out_channel());
    const int64_t most = std::max<int64_t>(kFloatBytes / std::max<int64_t>(group_bytes, 1), 1);
    // Parts of one size.
    groups = std::min(most, shape.groups);
    while (shape.groups % groups != 0) --groups;
    parts = shape.groups / groups;
    conv = TREADLE_ISA_NAMESPACE::prepare_conv(ComputeType::kF32, shape_of_planes(shape, groups), {});
    x = groups * g.in_per_group * g.in_channel();
    y = groups * g.out_per_group * g.out_channel();
    weights = groups * g.out_per_group * g.k;
    y_at = align_up(x * 4);
    weights_at = y_at + align_up((y + kIntPanel) * 4);  // vectors of y are read whole
    packed_at = weights_at + align_up(weights * 4);
    table_at = packed_at + align_up(static_cast<int64_t>(conv.packed_weight_bytes));
    conv_at = table_at + align_up(static_cast<int64_t>(conv.table_bytes));
    bytes = conv_at + static_cast<int64_t>(conv.scratch_bytes);
  }

  static constexpr int64_t kFloatBytes = 24 << 10;  // of planes at once, in the first-level cache
  int64_t groups, parts;                            // groups of a part
  ConvPlan conv;
  int64_t x, y, weights;  // elements of a part
  int64_t y_at, weights_at, packed_at, table_at, conv_at, bytes;
};

class PlaneConv {
 public:
  PlaneConv(const QConvPlan& plan, const QConvOperands& operands, const QGemmEpilogue& epilogue)
      : shape_(plan.shape),
        g_(plan.shape.conv),
        layout_(plan.shape.conv),
        operands_(operands),
        epilogue_(epilogue),
        store_(epilogue),
        scratch_(static_cast<std::byte*>(operands.scratch)) {
    make_conv_table(layout_.conv, scratch_ + layout_.table_at);
  }

  void run(int64_t begin, int64_t end) {
    const int64_t images = shape_.conv.batch;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t part = unit / images, image = unit % images;
      if (unit == begin || image == 0) centre_weights(part);
      const auto* x = static_cast<const std::byte*>(operands_.x) + (image * layout_.parts + part) * layout_.x;
      centre(x, byte_at(operands_.x_zero, shape_.x_signed, 0), shape_.x_signed, floats(0), layout_.x);
      layout_.conv.run(layout_.conv,
                       {.x = floats(0),
                        .packed_weights = scratch_ + layout_.packed_at,
                        .bias = nullptr,
                        .y = floats(layout_.y_at),
                        .scratch = scratch_ + layout_.conv_at,
                        .addend = nullptr,
                        .table = scratch_ + layout_.table_at},
                       0, layout_.conv.units);
      const int64_t channels = layout_.groups * g_.out_per_group;
      for (int64_t c = 0; c < channels; ++c) {
        finish(part * channels + c, floats(layout_.y_at) + c * g_.out_channel(),
               (image * shape_.conv.out_channels + part * channels + c) * g_.out_channel());
      }
    }
  }

 private:
  static void centre(const void* bytes, int32_t zero, bool is_signed, float* to, int64_t count) {
    TREADLE_ISA_NAMESPACE::quantize_kernels().from_bytes(bytes, 1, zero, is_signed, to, static_cast<size_t>(count));
  }
  float* floats(int64_t at) const { return reinterpret_cast<float*>(scratch_ + at); }

  void centre_weights(int64_t part) const {
    const auto* weights = static_cast<const std::byte*>(operands_.packed_weights) + part * layout_.weights;
    float* to = floats(layout_.weights_at);
    for (int64_t at = 0; at < layout_.weights; at += g_.k) {
      const int64_t channel = shape_.w_zero_per_channel ? (part * layout_.weights + at) / g_.k : 0;
      centre(weights + at, byte_at(operands_.w_zero, shape_.w_signed, channel), shape_.w_signed, to + at, g_.k);
    }
    pack_conv_weights(layout_.conv, to, scratch_ + layout_.packed_at);
  }

  // What the sums of an output channel get: a bias of integers, a scale, a bias of floats.
  struct Beside {
    int32_t bias = 0;
    float scale = 1, float_bias = 0;
  };
  Beside beside(int64_t channel) const {
    Beside all;
    if (epilogue_.bias != nullptr) all.bias = epilogue_.bias[channel];
    if (epilogue_.output == QGemmOutput::kInt32) return all;
    const float b_scale = epilogue_.b_scale[epilogue_.b_scale_per_column ? channel : 0];
    all.scale = *epilogue_.a_scale * b_scale / folded_scale(epilogue_);
    if (epilogue_.float_bias != nullptr) all.float_bias = epilogue_.float_bias[channel];
    return all;
  }

  // The sums of an output channel.
  void finish(int64_t channel, const float* sums, int64_t at) const {
    const Beside all = beside(channel);
    constexpr int32_t kWhole = 1 << 24;  // floats hold all integers up to here
    const bool adds_floats = std::abs(int64_t{all.bias}) <= kWhole;
    int64_t i = 0;
    if (epilogue_.output > QGemmOutput::kScaled && adds_floats) i = put_bytes(all, sums, at);
    for (; i < g_.out_channel(); i += kIntPanel) {
      const int64_t columns = std::min<int64_t>(kIntPanel, g_.out_channel() - i);
      QSums whole;
      for (size_t v = 0; v < 2; ++v) {
        whole[v] = convert_lanes<int32_t>(QFloats::load(sums + i + v * kIntLanes)) + QInts(all.bias);
      }
      if (epilogue_.output == QGemmOutput::kInt32) {
        store_.sums(whole, columns, operands_.y, at + i);
        continue;
      }
      QValues values;
      for (size_t v = 0; v < 2; ++v) {
        values[v] = convert_lanes<float>(whole[v]) * QFloats(all.scale);
        if (epilogue_.float_bias != nullptr) values[v] = values[v] + QFloats(all.float_bias);
      }
      store_.values(values, columns, operands_.y, at + i);
    }
  }

  // Of whole rows of vectors; how many elements these are. A sum and a bias that are whole numbers round once, as their
  // sum in integers does.
  int64_t put_bytes(const Beside& all, const float* sums, int64_t at) const {
    const ByteRounding rounding = store_.rounding();
    const QFloats bias(static_cast<float>(all.bias)), scale(all.scale), float_bias(all.float_bias);
    auto* y = static_cast<std::byte*>(operands_.y) + at;
    int64_t i = 0;
    for (; i + kIntPanel <= g_.out_channel(); i += kIntPanel) {
      QValues values{(QFloats::load(sums + i) + bias) * scale + float_bias,
                     (QFloats::load(sums + i + kIntLanes) + bias) * scale + float_bias};
      store_.clamp(values);
      rounding.put(values[0], values[1], y + i);
    }
    return i;
  }

  const QConvShape& shape_;
  const ConvGeometry g_;
  const PlaneLayout layout_;
  const QConvOperands& operands_;
  const QGemmEpilogue& epilogue_;
  const QStore store_;
  std::byte* scratch_;
};

void run_planes(const QConvPlan& plan, const QConvOperands& operands, const QGemmEpilogue& epilogue, int64_t begin,
                int64_t end) {
  PlaneConv(plan, operands, epilogue).run(begin, end);
}

// Weights stay bytes until a run knows their zero points.
void copy_filters(const QConvPlan& plan, const void* weights, void* packed, StopPoll&) {
  copy_in_pieces(packed, weights, plan.packed_weight_bytes);
}

void prepare_planes(QConvPlan& plan) {
  const ConvShape& shape = plan.shape.conv;
  const ConvGeometry g(shape);
  const PlaneLayout layout(shape);
  plan.units = g.out_channel() == 0 ? 0 : layout.parts * shape.batch;
  plan.scratch_bytes = static_cast<size_t>(layout.bytes);
  plan.packed_weight_bytes = static_cast<size_t>(shape.out_channels * g.k);
  plan.packing = "as given";
  plan.run = run_planes;
  plan.pack = copy_filters;
}

// A convolution of floats without channels makes no plane.
bool fits(const ConvGeometry& g) {
  return g.shape.in_channels > 0 && sums_fit_floats(g.shape.groups, g.out_per_group, g.k);
}

}  // namespace

constexpr ByteConvMethod kBytePlanes = {
    .name = "byte-planes",
    .fits = fits,
    .pays = [](const ConvGeometry&) { return true; },
    .prepare = prepare_planes,
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
