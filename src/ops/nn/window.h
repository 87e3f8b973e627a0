#pragma once
// What convolutions and pools have in common: a window that slides over the spatial axes of [N, C, spatial...].

#include "kernels/conv.h"
#include "kernels/pool.h"
#include "op/op_def.h"
#include "op/operands.h"

namespace treadle::nn {

enum class AutoPad : uint8_t { kNotSet, kSameUpper, kSameLower, kValid };

// The attributes auto_pad, kernel_shape, strides, dilations, pads and ceil_mode, for `axes` spatial axes.
struct Window {
  int axes = 0;
  bool has_kernel = false;  // whether kernel_shape was given
  kernels::Spatial kernel{};
  kernels::Spatial stride{1, 1, 1, 1, 1, 1}, dilation{1, 1, 1, 1, 1, 1};
  kernels::Spatial pad_begin{}, pad_end{};
  AutoPad auto_pad = AutoPad::kNotSet;
  bool ceil = false;

  // Elements from the first to the last that a window of `kernel` elements reaches along `axis`.
  Dim extent(size_t axis, const Dim& size) const { return (size - Dim(1)) * Dim(dilation[axis]) + Dim(1); }
  // Positions of the window along an axis of `input` elements; an error when it does not fit once.
  Result<Dim> positions(size_t axis, const Dim& input, const Dim& kernel_size) const;
  // Decides the pads of auto_pad, now that sizes are known.
  void resolve_pads(const kernels::Spatial& input, const kernels::Spatial& output);
};

// Errors name the attribute that does not fit.
Result<Window> read_window(const ir::Attributes& attributes, size_t axes);

// The number of spatial axes of a tensor of `shape`; an error unless it is 1 to kernels::kMaxSpatialAxes.
Result<size_t> spatial_axes(const Shape& shape, std::string_view what);

// The sizes from the third dimension on.
kernels::Spatial spatial_sizes(const Dims& dims);

// The size of the kernel of a convolution along spatial axis `i`, by its weights or, where these (null: their shape is
// not known) do not say it, by the attribute; an error where they contradict each other or the kernel has no elements.
Result<Dim> kernel_size(const Window& window, size_t i, const Shape* weights);

// Checks weights [M, C / group, kernel...] and an optional bias [M] against x; output 0 becomes [N, M, positions...].
Status infer_conv(InferContext& ctx, size_t x, size_t w, size_t bias, ElementType element);

// The kernel's sizes of a convolution without transposition.
Result<kernels::ConvShape> conv_shape(const PrepareContext& ctx, const Operand& x, const Operand& w);

Result<kernels::ConvShape> conv_shape(const ir::Attributes& attributes, const Dims& x, const Dims& w, const Dims& y);

// The kernel's sizes of a ConvTranspose.
Result<kernels::ConvShape> transposed_shape(const ir::Attributes& attributes, const Dims& x, const Dims& w,
                                            const Dims& y);

// The kernel's sizes of a pool.
Result<kernels::PoolShape> pool_shape(const ir::Attributes& attributes, const Dims& x, const Dims& y);

// Sizes with channels second, of those with channels last, and the other way round.
Dims channels_second(const Dims& last);
Dims channels_last(const Dims& second);
// `infer` of operands of which those in `inputs` (bits) and, where `y` says so, output 0 have their channels last.
Status infer_channels_last(InferContext& ctx, InferFn infer, uint64_t inputs, bool y);

// Of a convolution, transposed or not: what its time is estimated by.
double multiply_adds(const kernels::ConvShape& shape);

// Key of packed weights, of what they depend on beside the method (`seed`): channels, groups and kernel.
uint64_t layout_key(const kernels::ConvShape& shape, std::string_view packing);

// The attributes that all convolutions have.
void add_conv_attributes(VersionBuilder& version);

}  // namespace treadle::nn
