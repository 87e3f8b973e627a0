#pragma once
// Depthwise convolution straight from the input, row by row, for horizontal strides 1 and 2, where the instruction set
// loads under a mask for free: lanes whose tap falls off the row are masked out, taps off the plane are left out.
// Nothing is copied.
//
// Packed weights: masks [tap of a row][vector of a row][stride], then the weights.

#if defined(__AVX512F__)

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/isa/conv_shift.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// Vectors that share the load of a tap's weight: as many as there are mask registers for.
template <int kStride>
inline constexpr int kRowSums = 6 / kStride;

template <class T>
struct DepthwiseRowsLayout {
  using Mask = typename Lanes<T>::Mask;
  explicit DepthwiseRowsLayout(const ConvGeometry& g)
      : vectors((g.width.out + Lanes<T>::kCount - 1) / Lanes<T>::kCount),
        mask_bytes(g.width.kernel * vectors * g.width.stride * int64_t{sizeof(Mask)}) {}
  int64_t vectors, mask_bytes;
};

// Where rows are much narrower than their vectors, a method that runs on over row ends is better.
template <class T>
bool is_depthwise_by_rows(const ConvGeometry& g) {
  const int64_t lanes = DepthwiseRowsLayout<T>(g).vectors * Lanes<T>::kCount;
  return g.in_per_group == 1 && g.out_per_group == 1 && g.outer_axes == 0 && g.out_plane > 0 && g.width.stride <= 2 &&
         lanes * 2 <= g.width.out * 3 && g.width.out >= Lanes<T>::kCount * 2 &&
         (g.width.stride == 1 || std::is_same_v<T, float>);
}

// Vector v of tap kx reads from here on, relative to the first element of its row; with stride 2 a second time from
// kCount - 1 further on.
template <class T>
int64_t first_read(const Axis& w, int64_t v, int64_t kx) {
  return w.input_at(v * Lanes<T>::kCount, kx);
}

template <class T>
void pack_depthwise_rows(const ConvPlan& plan, const void* weights, void* packed) {
  constexpr int kCount = Lanes<T>::kCount;
  const ConvGeometry g(plan.shape);
  const DepthwiseRowsLayout<T> layout(g);
  typename Lanes<T>::Mask* mask = static_cast<typename Lanes<T>::Mask*>(packed);
  for (int64_t kx = 0; kx < g.width.kernel; ++kx) {
    for (int64_t v = 0; v < layout.vectors; ++v) {
      for (int64_t part = 0; part < g.width.stride; ++part) {
        unsigned bits = 0;
        for (int lane = 0; lane < kCount; ++lane) {
          const int64_t at = first_read<T>(g.width, v, kx) + part * (kCount - 1) + lane;
          bits |= static_cast<unsigned>(at >= 0 && at < g.width.in) << lane;
        }
        *mask++ = static_cast<typename Lanes<T>::Mask>(bits);
      }
    }
  }
  std::memcpy(aligned_after<T>(packed, layout.mask_bytes), weights,
              static_cast<size_t>(plan.shape.out_channels * g.taps) * sizeof(T));
}

template <class T, int kStride>
class DepthwiseRows {
  using L = Lanes<T>;
  using V = typename L::V;

 public:
  DepthwiseRows(const ConvPlan& plan, const ConvGeometry& g, const void* packed)
      : g_(g),
        vectors_(DepthwiseRowsLayout<T>(g).vectors),
        masks_(static_cast<const typename L::Mask*>(packed)),
        low_(L::splat(static_cast<T>(plan.clamp.low))),
        high_(L::splat(static_cast<T>(plan.clamp.high))) {}

  void channel(const T* x, const T* weights, T bias, T* y) const {
    const Axis& h = g_.height;
    const auto addend = L::splat(bias);
    for (int64_t row = 0; row < h.out; ++row, y += g_.width.out) {
      const auto [begin, end] = inside(h.input_at(row, 0), h.dilation, h.in, h.kernel);
      const T* from = x + h.input_at(row, begin) * g_.width.in;
      const T* w = weights + begin * g_.width.kernel;
      for (int64_t v = 0; v < vectors_;) {
        const int64_t count = std::min<int64_t>(vectors_ - v, kRowSums<kStride>);
        kStretches[count - 1](*this, v, from, end - begin, w, addend, y);
        v += count;
      }
    }
  }

 private:
  template <int kVectors>
  static void stretch(const DepthwiseRows& self, int64_t v, const T* x, int64_t rows, const T* weights, V bias, T* y) {
    const Axis& w = self.g_.width;
    const int64_t row = self.g_.height.dilation * w.in;
    V sums[kVectors];
    unrolled<kVectors>([&](auto i) __attribute__((always_inline)) { sums[i] = L::zero(); });
    // Columns of the kernel outside, so that masks stay in registers while its rows pass.
    const T* column = x + first_read<T>(w, v, 0);
    const typename L::Mask* from = self.masks_ + v * kStride;
    for (int64_t kx = 0; kx < w.kernel; ++kx, column += w.dilation, from += self.vectors_ * kStride) {
      typename L::Mask masks[kVectors * kStride];
      unrolled<kVectors * kStride>([&](auto i) __attribute__((always_inline)) { masks[i] = from[i]; });
      const T* p = column;
      const T* weight = weights + kx;
      for (int64_t ky = 0; ky < rows; ++ky, p += row, weight += w.kernel) {
        const V factor = L::splat(*weight);
        unrolled<kVectors>([&](auto i) __attribute__((always_inline)) {
          sums[i] = L::mul_add(factor, read(p + i * (L::kCount * kStride), masks + i * kStride), sums[i]);
        });
      }
    }
    unrolled<kVectors>([&](auto i) __attribute__((always_inline)) {
      const int64_t left = w.out - (v + i) * L::kCount;
      const V value = L::min(self.high_, L::max(self.low_, L::add(sums[i], bias)));
      if (left >= L::kCount) {
        L::store(y + (v + i) * L::kCount, value);
      } else {
        L::store(y + (v + i) * L::kCount, L::mask(static_cast<int>(left)), value);
      }
    });
  }

  [[gnu::always_inline]] static V read(const T* p, const typename L::Mask* masks) {
    if constexpr (kStride == 1) {
      return L::load(p, masks[0]);
    } else {
      const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
      return _mm512_permutex2var_ps(L::load(p, masks[0]), even, L::load(p + L::kCount - 1, masks[1]));
    }
  }

  using Stretch = void (*)(const DepthwiseRows&, int64_t, const T*, int64_t, const T*, V, T*);
  template <int... kVectors>
  static constexpr std::array<Stretch, sizeof...(kVectors)> stretches(std::integer_sequence<int, kVectors...>) {
    return {stretch<kVectors + 1>...};
  }
  static constexpr auto kStretches = stretches(std::make_integer_sequence<int, kRowSums<kStride>>());

  const ConvGeometry& g_;
  int64_t vectors_;
  const typename L::Mask* masks_;
  V low_, high_;
};

template <class T, int kStride>
void run_depthwise_rows(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvGeometry g(plan.shape);
  const DepthwiseRows<T, kStride> rows(plan, g, operands.packed_weights);
  const T* weights =
      aligned_after<const T>(const_cast<void*>(operands.packed_weights), DepthwiseRowsLayout<T>(g).mask_bytes);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t c = unit % plan.shape.out_channels;
    rows.channel(static_cast<const T*>(operands.x) + unit * g.in_plane, weights + c * g.taps,
                 operands.bias == nullptr ? T(0) : static_cast<const T*>(operands.bias)[c],
                 static_cast<T*>(operands.y) + unit * g.out_plane);
  }
}

template <class T>
void prepare_depthwise_rows(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  plan.units = plan.shape.batch * plan.shape.out_channels;
  plan.packed_weight_bytes = static_cast<size_t>(DepthwiseRowsLayout<T>(g).mask_bytes) + kKernelAlignment +
                             static_cast<size_t>(plan.shape.out_channels * g.taps) * sizeof(T);
  plan.run = run_depthwise_rows<T, 1>;
  if constexpr (std::is_same_v<T, float>) {
    if (g.width.stride == 2) plan.run = run_depthwise_rows<T, 2>;
  }
  plan.pack = pack_depthwise_rows<T>;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE

#endif
