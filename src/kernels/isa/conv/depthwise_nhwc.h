#pragma once
// What depthwise convolutions of f32 with channels last, [row][column][channel], share. Lanes hold channels, so that
// neither the length of rows nor strides cost anything. Taps off the plane read zeros, as they do with channels first.
//
// Packed weights: [tap][channels], rounded up to whole vectors, taps in the order in which they are added.

#include <algorithm>
#include <cstdint>

#include "base/in_pieces.h"
#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/conv/implicit_gemm.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

inline int64_t padded_channels(int64_t channels) {
  constexpr int64_t kLanes = Lanes<float>::kCount;
  return (channels + kLanes - 1) / kLanes * kLanes;
}

// kByColumn: taps go down the columns of the kernel, otherwise along its rows.
template <bool kByColumn>
void pack_depthwise_nhwc(const ConvPlan& plan, const void* weights, void* packed, StopPoll& stop) {
  const ConvGeometry g(plan.shape);
  const auto* from = static_cast<const float*>(weights);
  auto* to = static_cast<float*>(packed);
  const int64_t channels = plan.shape.out_channels;
  for (int64_t i = 0; i < g.taps; ++i, to += padded_channels(channels)) {
    const int64_t tap = kByColumn ? i % g.height.kernel * g.width.kernel + i / g.height.kernel : i;
    const bool goes_on = in_pieces(channels, kPackedNs, stop, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) to[c] = from[c * g.taps + tap];
    });
    if (!goes_on) return;
    std::fill(to + channels, to + padded_channels(channels), 0.f);
  }
}

inline size_t depthwise_nhwc_weight_bytes(const ConvGeometry& g) {
  return static_cast<size_t>(g.taps * padded_channels(g.shape.out_channels)) * sizeof(float);
}

// A vector of sums to where it belongs; `c`: its first channel. kTail: only the lanes in `tail` are channels.
template <bool kTail>
[[gnu::always_inline]] inline void store_nhwc(const ConvOperands& operands, Lanes<float>::V value, int64_t c,
                                              Lanes<float>::Mask tail, Lanes<float>::V low, Lanes<float>::V high,
                                              float* to) {
  using L = Lanes<float>;
  const auto read = [&](const float* p)
                        __attribute__((always_inline)) { return kTail ? L::load(p, tail) : L::load(p); };
  const auto* bias = static_cast<const float*>(operands.bias);
  value = L::add(value, bias == nullptr ? L::zero() : read(bias + c));
  if (const float* addend = beside(operands, to)) value = L::add(value, read(addend));
  value = L::min(high, L::max(low, value));
  if (kTail) {
    L::store(to, tail, value);
  } else {
    L::store(to, value);
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
