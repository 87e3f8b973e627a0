#pragma once
// Convolution over 1 to kMaxSpatialAxes spatial axes, NC<spatial> in and out, all sizes known at prepare.
// Weights are packed once where they are constant, for inputs of any size; a run allocates nothing.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

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
  // Channels are the last axis of x, and of y and the addend: [N, spatial..., C]. Only as conv_layouts says.
  bool x_last = false, y_last = false;
};

// Which operands may have their channels last. Results have the same bits.
struct ConvLayouts {
  bool x = false, y = false;
  bool apart = false;     // one without the other as well
  bool in_lanes = false;  // otherwise the convolution turns what has channels first while it computes
};
ConvLayouts conv_layouts(ComputeType type, const ConvShape& shape);

// Applied to every output element at the very end: Relu is (0, inf). NaN stays NaN.
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
  const void* table = nullptr;   // what make_conv_table wrote
};
using ConvRun = void (*)(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end);
using ConvPack = void (*)(const ConvPlan& plan, const void* weights, void* packed, StopPoll& stop);
using ConvTable = void (*)(const ConvPlan& plan, void* table);

struct ConvPlan {
  ConvShape shape;
  std::string_view method;               // its name
  std::string_view packing;              // plans with one packing, channels, groups and kernel sizes pack alike
  ComputeType type = ComputeType::kF32;  // kF32 or kF64
  Clamp clamp{-__builtin_inff(), __builtin_inff()};
  int64_t units = 0;  // independent parts of the work, for run_conv_range; results do not depend on the split
  size_t scratch_bytes = 0;
  size_t packed_weight_bytes = 0;
  size_t table_bytes = 0;  // of what follows from sizes alone; may be 0
  ConvRun run = nullptr;
  ConvPack pack = nullptr;
  ConvTable make_table = nullptr;
  // Where the weights as given have taps that no position reads the input with: the others' box is packed.
  bool cuts = false;
  int given_axes = 0;
  Spatial given_kernel{}, first_tap{}, kept{};
  size_t cut_at = 0, uncut_bytes = 0;  // in packed weights: room for the box; those without it
};

// The methods of the instruction set in use, those of bytes last. docs/options.md
std::vector<std::string_view> conv_methods();
// Makes prepare functions of the calling thread take the method of this name wherever it fits, for tests and
// benchmarks. TREADLE_CONV does so for all threads.
class ScopedConvMethod {
 public:
  explicit ScopedConvMethod(std::string_view name);
  ~ScopedConvMethod();
  ScopedConvMethod(const ScopedConvMethod&) = delete;
  ScopedConvMethod& operator=(const ScopedConvMethod&) = delete;

 private:
  std::string_view before_;
};
// The method that is asked for; empty: none.
std::string_view wanted_conv_method();

// The plan's shape computes the same without axes and taps that nothing depends on.
ConvPlan prepare_conv(ComputeType type, const ConvShape& shape);

// Weights that are no constant are packed by the caller in every run, into scratch of its own. Ends early as pack_b
// does.
void pack_conv_weights(const ConvPlan& plan, const void* weights, void* packed);
// Once per plan, 64-byte aligned.
inline void make_conv_table(const ConvPlan& plan, void* table) {
  if (plan.make_table != nullptr) plan.make_table(plan, table);
}
inline void run_conv(const ConvPlan& plan, const ConvOperands& operands) {
  plan.run(plan, operands, 0, plan.units);
}
inline void run_conv_range(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  plan.run(plan, operands, begin, end);
}

// 8-bit convolution: sums of (x - x_zero)(w - w_zero), exact; padding contributes nothing. Not transposed.
struct QConvShape {
  ConvShape conv;
  bool x_signed = false, w_signed = false;
  bool w_zero_per_channel = false;  // one per output channel, else one for all
};
// out_channels take the place of columns in QGemmEpilogue: bias, scales and zero points of weights are per output
// channel.
struct QConvOperands {
  const void* x;
  const void* packed_weights;
  const void* x_zero;  // one; null means 0
  const void* w_zero;  // one or out_channels; null means 0
  void* y;             // i32, float, u8 or i8 by the epilogue
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
// Ends early as pack_b does; nothing may run with what it has written then, which says where other numbers lie.
inline void pack_qconv_weights(const QConvPlan& plan, const void* weights, void* packed) {
  StopPoll stop;
  plan.pack(plan, weights, packed, stop);
}
inline void run_qconv(const QConvPlan& plan, const QConvOperands& operands, const QGemmEpilogue& epilogue) {
  plan.run(plan, operands, epilogue, 0, plan.units);
}

}  // namespace treadle::kernels
