#include "kernels/conv.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/in_pieces.h"
#include "base/knobs.h"
#include "kernels/conv_costs.h"
#include "kernels/conv_folded.h"
#include "kernels/isa/each.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels {

namespace {

// Whether any of the positions `first`, `first + stride`, ... lies in the plane. `first`: a tap's coordinate in the
// first window.
bool meets(int64_t first, int64_t stride, int64_t positions, int64_t plane) {
  const int64_t position = first >= 0 ? 0 : (-first + stride - 1) / stride;
  return position < positions && first + position * stride < plane;
}

// Removes the taps at the ends of axis `i` that read nothing but padding.
void cut_taps(ConvShape& s, size_t i, ConvPlan& plan) {
  const int64_t positions = s.transposed ? s.input[i] : s.output[i], plane = s.transposed ? s.output[i] : s.input[i];
  const auto is_live = [&](int64_t tap) {
    return meets(tap * s.dilation[i] - s.pad_begin[i], s.stride[i], positions, plane);
  };
  int64_t first = 0, last = s.kernel[i] - 1;
  while (first < last && !is_live(first)) ++first;
  while (last > first && !is_live(last)) --last;
  plan.first_tap[i] = first;
  plan.kept[i] = last + 1 - first;
  if (plan.kept[i] == s.kernel[i]) return;
  plan.cuts = true;
  s.kernel[i] = plan.kept[i];
  s.pad_begin[i] -= first * s.dilation[i];
}

bool is_no_axis(const ConvShape& s, size_t i) {
  return s.input[i] == 1 && s.output[i] == 1 && s.kernel[i] == 1 && s.pad_begin[i] == 0;
}

void drop_axis(ConvShape& s, size_t i) {
  for (Spatial* sizes : {&s.input, &s.output, &s.kernel, &s.stride, &s.dilation, &s.pad_begin}) {
    std::copy(sizes->begin() + i + 1, sizes->end(), sizes->begin() + i);
  }
  --s.axes;
}

// Removes axes of size 1, and taps that read nothing but padding. A kernel of 5 x 1 over planes of one column becomes a
// kernel of 5 over lines; a kernel of 5 x 3 does so too if its other columns only meet padding.
ConvShape without_idle_axes(const ConvShape& given, ConvPlan& plan) {
  ConvShape s = given;
  plan.given_axes = s.axes;
  plan.given_kernel = s.kernel;
  // The method `folded` needs the weights as given.
  for (size_t i = 0; !may_fold(given) && i < static_cast<size_t>(given.axes); ++i) cut_taps(s, i, plan);
  for (size_t i = static_cast<size_t>(given.axes); i-- > 0 && s.axes > 1;) {
    if (is_no_axis(s, i)) drop_axis(s, i);
  }
  return s;
}

ConvPlan prepare_for_isa(ComputeType type, const ConvShape& shape) {
  return TREADLE_OF_ISA(preferred_isa(), prepare_conv)(type, shape, ScopedConvMethod::current());
}

int64_t product(const Spatial& sizes, int axes) {
  return std::accumulate(sizes.begin(), sizes.begin() + axes, int64_t{1}, std::multiplies<>());
}

// Copies the box of kept taps of each filter's plane of weights.
void copy_kept_taps(const ConvPlan& plan, const std::byte* from, std::byte* to, StopPoll& stop) {
  const size_t element = plan.type == ComputeType::kF64 ? sizeof(double) : sizeof(float);
  const ConvShape& s = plan.shape;
  const int64_t planes = s.in_channels * s.out_channels / s.groups;
  const int64_t taps = product(plan.given_kernel, plan.given_axes), kept = product(plan.kept, plan.given_axes);
  for (int64_t tap = 0; tap < kept; ++tap) {
    int64_t at = 0, scale = 1, rest = tap;
    for (int axis = plan.given_axes - 1; axis >= 0; --axis) {
      const auto i = static_cast<size_t>(axis);
      at += (plan.first_tap[i] + rest % plan.kept[i]) * scale;
      scale *= plan.given_kernel[i];
      rest /= plan.kept[i];
    }
    const bool goes_on = in_pieces(planes, kPackedNs, stop, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        std::memcpy(to + static_cast<size_t>(p * kept + tap) * element,
                    from + static_cast<size_t>(p * taps + at) * element, element);
      }
    });
    if (!goes_on) return;
  }
}

ConvLayouts layouts_for_isa(ComputeType type, const ConvShape& shape) {
  return TREADLE_OF_ISA(preferred_isa(), conv_layouts)(type, shape, ScopedConvMethod::current());
}

bool has_results(const ConvShape& s) {
  return s.batch > 0 && s.out_channels > 0 && product(s.output, s.axes) > 0;
}

// The plan of a convolution whose result has no elements: it has no units of work, so no kernel reads the weights.
ConvPlan idle_conv(ComputeType type, const ConvShape& shape) {
  ConvPlan plan;
  plan.method = plan.packing = "idle";
  plan.shape = shape;
  plan.type = type;
  plan.run = [](const ConvPlan&, const ConvOperands&, int64_t, int64_t) {};
  plan.pack = [](const ConvPlan&, const void*, void*, StopPoll&) {};
  return plan;
}

// A convolution without input channels: bias, addend and clamp remain. A unit is an image.
template <class T>
void run_bias(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvShape& s = plan.shape;
  const int64_t positions = product(s.output, s.axes), image = positions * s.out_channels;
  const T low = static_cast<T>(plan.clamp.low), high = static_cast<T>(plan.clamp.high);
  const auto* bias = static_cast<const T*>(operands.bias);
  const auto* addend = static_cast<const T*>(operands.addend);
  for (int64_t i = begin * image; i < end * image; ++i) {
    T sum = bias ? bias[s.y_nhwc ? i % s.out_channels : i / positions % s.out_channels] : T(0);
    if (addend) sum += addend[i];
    static_cast<T*>(operands.y)[i] = sum < low ? low : sum > high ? high : sum;
  }
}

ConvPlan conv_of_nothing(ComputeType type, const ConvShape& shape) {
  ConvPlan plan = idle_conv(type, shape);
  plan.method = "bias";
  plan.units = shape.batch;
  plan.run = type == ComputeType::kF64 ? run_bias<double> : run_bias<float>;
  return plan;
}

QConvPlan idle_qconv(const QConvShape& shape) {
  QConvPlan plan;
  plan.shape = shape;
  plan.method = plan.packing = "idle";
  plan.run = [](const QConvPlan&, const QConvOperands&, const QGemmEpilogue&, int64_t, int64_t) {};
  plan.pack = [](const QConvPlan&, const void*, void*, StopPoll&) {};
  return plan;
}

}  // namespace

std::vector<std::string_view> conv_methods() {
  std::vector<std::string_view> names = TREADLE_OF_ISA(preferred_isa(), conv_methods)();
  names.push_back(kFoldedMethod);
  for (const std::string_view name : TREADLE_OF_ISA(preferred_isa(), byte_conv_methods)()) names.push_back(name);
  return names;
}

std::string_view ConvMethodChoice::of_process() {
  static const char* const wanted = environment("TREADLE_CONV");
  return wanted == nullptr ? "" : wanted;
}

ConvLayouts conv_layouts(ComputeType type, const ConvShape& given) {
  if (!has_results(given) || given.in_channels == 0 || may_fold(given)) return {};
  ConvPlan cut;
  return layouts_for_isa(type, without_idle_axes(given, cut));
}

ConvPlan prepare_conv(ComputeType type, const ConvShape& given) {
  if (!has_results(given)) return idle_conv(type, given);
  if (given.in_channels == 0) return conv_of_nothing(type, given);
  ConvPlan cut;
  const ConvShape shape = without_idle_axes(given, cut);
  ConvPlan plan = prepare_for_isa(type, shape);
  if (!cut.cuts) return plan;
  plan.cuts = true;
  plan.given_axes = cut.given_axes;
  plan.given_kernel = cut.given_kernel;
  plan.first_tap = cut.first_tap;
  plan.kept = cut.kept;
  plan.uncut_bytes = plan.packed_weight_bytes;
  plan.cut_at = (plan.packed_weight_bytes + kKernelAlignment - 1) / kKernelAlignment * kKernelAlignment;
  const int64_t weights = shape.in_channels * shape.out_channels / shape.groups * product(cut.kept, cut.given_axes);
  plan.packed_weight_bytes =
      plan.cut_at + static_cast<size_t>(weights) * (type == ComputeType::kF64 ? sizeof(double) : sizeof(float));
  return plan;
}

void pack_conv_weights(const ConvPlan& plan, const void* weights, void* packed) {
  StopPoll stop;
  if (!plan.cuts) return plan.pack(plan, weights, packed, stop);
  auto* box = static_cast<std::byte*>(packed) + plan.cut_at;
  copy_kept_taps(plan, static_cast<const std::byte*>(weights), box, stop);
  ConvPlan uncut = plan;
  uncut.packed_weight_bytes = plan.uncut_bytes;
  plan.pack(uncut, box, packed, stop);
}

std::vector<ConvCost> conv_costs(ComputeType type, const ConvShape& given) {
  if (!has_results(given) || given.in_channels == 0) return {};
  ConvPlan cut;
  return TREADLE_OF_ISA(preferred_isa(), conv_costs)(type, without_idle_axes(given, cut));
}

QConvPlan prepare_qconv(const QConvShape& shape) {
  if (!has_results(shape.conv)) return idle_qconv(shape);
  return TREADLE_OF_ISA(preferred_isa(), prepare_qconv)(shape, ScopedConvMethod::current());
}

}  // namespace treadle::kernels
