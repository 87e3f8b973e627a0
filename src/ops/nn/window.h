#pragma once
// Shared by convolutions and pools: a window that slides over the spatial axes of [N, C, spatial...].

#include "kernels/conv.h"
#include "kernels/pool.h"
#include "op/op_def.h"
#include "op/operands.h"

namespace treadle::nn {

enum class AutoPad : uint8_t { kNotSet, kSameUpper, kSameLower, kValid };

// The attributes auto_pad, kernel_shape, strides, dilations, pads and ceil_mode, for `axes` spatial axes.
struct Window {
  int axes = 0;
  bool has_kernel = false;  // whether kernel_shape is given
  kernels::Spatial kernel{};
  kernels::Spatial stride{1, 1, 1, 1, 1, 1}, dilation{1, 1, 1, 1, 1, 1};
  kernels::Spatial pad_begin{}, pad_end{};
  AutoPad auto_pad = AutoPad::kNotSet;
  bool ceil = false;

  // How many elements a window of `size` elements spans along `axis`, dilation included.
  Dim extent(size_t axis, const Dim& size) const { return (size - Dim(1)) * Dim(dilation[axis]) + Dim(1); }
  // The number of positions of the window along an axis of `input` elements. Errors: it does not fit once.
  Result<Dim> positions(size_t axis, const Dim& input, const Dim& kernel_size) const;
  // Computes the pads of auto_pad from known sizes.
  void resolve_pads(const kernels::Spatial& input, const kernels::Spatial& output);
};

// Errors: an invalid attribute, with its name.
Result<Window> read_window(const ir::Attributes& attributes, size_t axes);

// The number of spatial axes of a tensor of `shape`. Errors: it is not 1 to kernels::kMaxSpatialAxes.
Result<size_t> spatial_axes(const Shape& shape, std::string_view what);

// The sizes from the third dimension on.
kernels::Spatial spatial_sizes(const Dims& dims);

// The kernel's size along spatial axis `i`: by the weights, or by the attribute if the weights' shape is unknown
// (null). Errors: the two differ, or the kernel has no elements.
Result<Dim> kernel_size(const Window& window, size_t i, const Shape* weights);

// Checks weights [M, C / group, kernel...] and an optional bias [M] against x. Output 0 becomes [N, M, positions...].
Status infer_conv(InferContext& ctx, size_t x, size_t w, size_t bias, ElementType element);

// The sizes of a convolution that is not transposed.
Result<kernels::ConvShape> conv_shape(const PrepareContext& ctx, const Operand& x, const Operand& w);

Result<kernels::ConvShape> conv_shape(const ir::Attributes& attributes, const Dims& x, const Dims& w, const Dims& y);

// The sizes of a ConvTranspose.
Result<kernels::ConvShape> transposed_shape(const ir::Attributes& attributes, const Dims& x, const Dims& w,
                                            const Dims& y);

// The sizes of a pool.
Result<kernels::PoolShape> pool_shape(const ir::Attributes& attributes, const Dims& x, const Dims& y);

// NCHW sizes from NHWC sizes, and back.
Dims channels_second(const Dims& last);
Dims channels_last(const Dims& second);
// Calls `infer` for operands of which those in `inputs` (bits) and, if `y`, output 0 are NHWC.
Status infer_channels_last(InferContext& ctx, InferFn infer, uint64_t inputs, bool y);

// The multiply-adds of a convolution, transposed or not, by which its time is estimated.
double multiply_adds(const kernels::ConvShape& shape);

// Key of packed weights: `packing` names the form; channels, groups and kernel are part of the key.
uint64_t layout_key(const kernels::ConvShape& shape, std::string_view packing);

// Adds the attributes that all convolutions have.
void add_conv_attributes(VersionBuilder& version);

}  // namespace treadle::nn
