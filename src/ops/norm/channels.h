#pragma once
// Scaling and shifting tensors [batch, channels, inner] per channel, in float or double.

#include "base/in_pieces.h"
#include "kernels/convert.h"
#include "kernels/dispatch.h"
#include "op/axis.h"
#include "op/context.h"
#include "op/gemm.h"
#include "op/parallel.h"
#include "ops/costs.h"

namespace treadle::norm {

// y[n,c,i] = alpha[c] x[n,c,i] + beta[c]; y may be x. W: float or double.
struct ChannelAffine {
  AxisView view;
  kernels::Row affine = nullptr, multiply = nullptr, add = nullptr;

  template <class W>
  static ChannelAffine make(const AxisView& view) {
    constexpr ComputeType kType = sizeof(W) == 4 ? ComputeType::kF32 : ComputeType::kF64;
    return {view, kernels::elementwise_rows(kernels::ElementwiseOp::kAffine, kType).vv,
            kernels::elementwise_rows(kernels::ElementwiseOp::kMul, kType).vv,
            kernels::elementwise_rows(kernels::ElementwiseOp::kAdd, kType).vv};
  }

  template <class W>
  void operator()(const W* x, const W* alpha, const W* beta, W* y) const {
    const size_t batch = view.outer, channels = view.n, inner = view.inner;
    if (inner == 1) {  // channels are neighbours
      parallel_for(static_cast<int64_t>(batch), costs::kRowElementNs * static_cast<double>(channels),
                   [&](int64_t begin, int64_t end, int) {
                     for (auto n = static_cast<size_t>(begin); n < static_cast<size_t>(end); ++n) {
                       multiply(x + n * channels, alpha, y + n * channels, channels, nullptr);
                       add(y + n * channels, beta, y + n * channels, channels, nullptr);
                     }
                   });
      return;
    }
    parallel_for(static_cast<int64_t>(batch * channels), costs::kRowElementNs * static_cast<double>(inner),
                 [&](int64_t begin, int64_t end, int) {
                   for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
                     const size_t c = i % channels;
                     const kernels::ElementwiseParams params{static_cast<double>(alpha[c]),
                                                             static_cast<double>(beta[c])};
                     in_pieces(static_cast<int64_t>(inner), costs::kRowElementNs, [&](int64_t first, int64_t last) {
                       const size_t at = i * inner + static_cast<size_t>(first);
                       affine(x + at, nullptr, y + at, static_cast<size_t>(last - first), &params);
                     });
                   }
                 });
  }
};

inline ElementType wide_float(ElementType type) {
  return type == ElementType::kDouble ? type : ElementType::kFloat;
}

// A result that is computed in a wide type: in place if it has this type, else in scratch and then rounded.
struct WideResult {
  bool narrows = false;
  kernels::TileConverter converter;
  size_t offset = 0, count = 0;

  void prepare(const Operand& result, ElementType wide, ScratchLayout& scratch) {
    count = static_cast<size_t>(result.element_count());
    narrows = result.type != wide;
    if (!narrows) return;
    converter = kernels::make_converter(wide, result.type);
    offset = scratch.add(count * byte_width(wide));
  }
  void* begin(void* out, std::byte* scratch) const { return narrows ? scratch + offset : out; }
  void finish(void* out, std::byte* scratch) const {
    if (narrows) kernels::convert(converter, scratch + offset, out, count);
  }
};

}  // namespace treadle::norm
