#pragma once
// Convolution over 1 to kMaxSpatialAxes spatial axes, in layout NC<spatial> or NHWC. All sizes are known at
// preparation. Constant weights are packed once, for inputs of any size. A run allocates nothing.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/scoped_choice.h"
#include "kernels/gemm.h"

namespace treadle::kernels {

inline constexpr int kMaxSpatialAxes = 6;
using Spatial = std::array<int64_t, kMaxSpatialAxes>;  // entries from `axes` on are ignored

// Conv: weights [out_channels, in_channels / groups, kernel...]. ConvTranspose: [in_channels, out_channels / groups,
// kernel...]. Pads may be negative (they crop). The caller has resolved auto_pad and output sizes.
struct ConvShape {
  int axes = 2;
  int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  Spatial input{}, output{}, kernel{};
  Spatial stride{1, 1, 1, 1, 1, 1}, dilation{1, 1, 1, 1, 1, 1};
  Spatial pad_begin{};
  bool transposed = false;
  // x, or y and the addend, have their channels last: [N, spatial..., C]. Only where conv_layouts allows it.
  bool x_nhwc = false, y_nhwc = false;
};

// Which operands may have their channels last (NHWC). All layouts give the same bits.
struct ConvLayouts {
  bool x = false, y = false;
  bool apart = false;  // x and y may have different layouts
  // Estimated time of a run: with channels first, with channels last for x, for y and for both, where it is allowed.
  double nchw_ns = 0, x_ns = 0, y_ns = 0, both_ns = 0;
};
ConvLayouts conv_layouts(ComputeType type, const ConvShape& shape);

// Applied to every output element last. Relu is (0, inf). NaN stays NaN.
struct Clamp {
  float low, high;
};

struct ConvPlan;
struct ConvOperands {
  const void* x;
  const void* packed_weights;
  const void* bias;  // [out_channels] or null
  void* y;
  void* scratch;                 // plan.scratch_bytes, one per thread
  const void* addend = nullptr;  // like y, added after the bias; null: nothing
  const void* table = nullptr;   // the table that make_conv_table wrote
};
using ConvRun = void (*)(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end);
using ConvPack = void (*)(const ConvPlan& plan, const void* weights, void* packed, StopPoll& stop);
using ConvTable = void (*)(const ConvPlan& plan, void* table);

struct ConvPlan {
  ConvShape shape;
  std::string_view method;  // name of the method
  // Plans that agree in it, in channels, groups, kernel sizes and kept taps pack weights alike.
  std::string_view packing;
  ComputeType type = ComputeType::kF32;  // kF32 or kF64
  Clamp clamp{-__builtin_inff(), __builtin_inff()};
  int64_t units = 0;  // independent parts of the work, for run_conv_range; results do not depend on the split
  size_t scratch_bytes = 0;
  size_t packed_weight_bytes = 0;
  size_t table_bytes = 0;  // size of the table of numbers that follow from the sizes alone; may be 0
  ConvRun run = nullptr;
  ConvPack pack = nullptr;
  ConvTable make_table = nullptr;
  // Set if some taps only ever meet padding: only the box of the remaining taps is packed.
  bool cuts = false;
  int given_axes = 0;
  Spatial given_kernel{}, first_tap{}, kept{};
  size_t cut_at = 0, uncut_bytes = 0;  // in packed weights: offset of the box of taps; bytes without that box
};

// Names of the methods of the instruction set in use; methods of bytes come last. See docs/options.md.
std::vector<std::string_view> conv_methods();
struct ConvMethodChoice {
  using Value = std::string_view;  // empty: none
  static Value of_process();       // TREADLE_CONV
};
// Makes prepare functions of the calling thread take the method of this name for every shape that it fits. For tests
// and benchmarks. TREADLE_CONV does so for all threads.
using ScopedConvMethod = ScopedChoice<ConvMethodChoice>;

// The shape in the plan leaves out axes and taps that do not change the result.
ConvPlan prepare_conv(ComputeType type, const ConvShape& shape);

// Packs weights; weights that are not constant are packed by the caller in every run, into scratch of its own. Ends
// early as pack_b does.
void pack_conv_weights(const ConvPlan& plan, const void* weights, void* packed);
// Called once per plan. `table`: aligned to 64 bytes.
inline void make_conv_table(const ConvPlan& plan, void* table) {
  if (plan.make_table != nullptr) plan.make_table(plan, table);
}
inline void run_conv(const ConvPlan& plan, const ConvOperands& operands) {
  plan.run(plan, operands, 0, plan.units);
}
inline void run_conv_range(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  plan.run(plan, operands, begin, end);
}

// 8-bit convolution: exact sums of (x - x_zero)(w - w_zero). Padding adds nothing. Not transposed.
struct QConvShape {
  ConvShape conv;
  bool x_signed = false, w_signed = false;
  bool w_zero_per_channel = false;  // one zero point per output channel; otherwise one for all
};
// Output channels are the columns of QGemmEpilogue: bias, scales and zero points of weights are per output channel.
struct QConvOperands {
  const void* x;
  const void* packed_weights;
  const void* x_zero;  // one element; null means 0
  const void* w_zero;  // one element, or out_channels; null means 0
  void* y;             // i32, float, u8 or i8, as the epilogue says
  void* scratch;
};
struct QConvPlan;
struct QGemmEpilogue;
using QConvRun = void (*)(const QConvPlan& plan, const QConvOperands& operands, const QGemmEpilogue& epilogue,
                          int64_t begin, int64_t end);
using QConvPack = void (*)(const QConvPlan& plan, const void* weights, void* packed, StopPoll& stop);
struct QConvPlan {
  QConvShape shape;
  std::string_view method, packing;  // as in ConvPlan
  int64_t units = 0;
  size_t scratch_bytes = 0;
  size_t packed_weight_bytes = 0;
  QConvRun run = nullptr;
  QConvPack pack = nullptr;
};
QConvPlan prepare_qconv(const QConvShape& shape);
// Ends early as pack_b does. Packed weights that are incomplete must not be used at all: they hold offsets of other
// packed data.
inline void pack_qconv_weights(const QConvPlan& plan, const void* weights, void* packed) {
  StopPoll stop;
  plan.pack(plan, weights, packed, stop);
}
inline void run_qconv(const QConvPlan& plan, const QConvOperands& operands, const QGemmEpilogue& epilogue) {
  plan.run(plan, operands, epilogue, 0, plan.units);
}

}  // namespace treadle::kernels
