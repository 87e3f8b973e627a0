#pragma once
// Depthwise convolution of f32 straight from the input, for kernels of 3, 5 or 7 rows and strides 1 and 2. Several
// output rows are computed at once, so that what is loaded from an input row is used for each of them. Lanes whose tap
// falls off the row are masked out, rows off the plane are read from a row of zeros. Nothing is copied.

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/isa/conv/implicit_gemm.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

inline constexpr int kMostRows = 8;  // output rows at once, at most

// As many as registers have room for, of rows of so many vectors.
constexpr int tall_rows(int64_t tall, int64_t vectors) {
  return kVectorRegisters == 32 || (vectors == 1 && tall <= 5) ? kMostRows : kMostRows / 2;
}

// The last ones may be fewer than are computed.
inline int rows_at_once(int64_t tall, int64_t vectors, int64_t left) {
  const int most = tall_rows(tall, std::min<int64_t>(vectors, 2));
  if (left >= most - 1) return most;
  return left >= 3 ? 4 : left >= 2 ? 2 : 1;
}

// The lanes of one vector, kAcross elements apart, that lie in [0, size) when lane 0 is element `first`.
template <int kAcross>
class EdgeLanes {
  using L = Lanes<float>;

 public:
  EdgeLanes() = default;
#if defined(__AVX2__)
  EdgeLanes(int64_t first, int64_t size) {
    for (int part = 0; part < kAcross; ++part, first += L::kCount - 1) {
      const auto lane = [](int64_t at) { return static_cast<int>(std::clamp<int64_t>(at, 0, L::kCount)); };
      mask_[part] = between(lane(-first), lane(size - first));
    }
  }
  [[gnu::always_inline]] L::V load(const float* p) const {
    if constexpr (kAcross == 1) return L::load(p, mask_[0]);
    return even_lanes(L::load(p, mask_[0]), L::load(p + L::kCount - 1, mask_[kAcross - 1]));
  }

 private:
  static L::Mask between(int begin, int end) {
#if defined(__AVX512F__)
    return static_cast<L::Mask>(L::mask(end) & ~L::mask(begin));
#else
    return _mm256_andnot_si256(L::mask(begin), L::mask(end));
#endif
  }
  L::Mask mask_[kAcross];
#else
  EdgeLanes(int64_t first, int64_t size) : first_(first), size_(size) {}
  L::V load(const float* p) const {
    float lanes[L::kCount];
    for (int i = 0; i < L::kCount; ++i) {
      const int64_t at = first_ + i * kAcross;
      lanes[i] = at >= 0 && at < size_ ? p[i * kAcross] : 0.f;
    }
    return L::load(lanes);
  }

 private:
  int64_t first_ = 0, size_ = 0;
#endif
};

// kTall: rows of the kernel. kDown, kAcross: strides.
template <int kTall, int kDown, int kAcross>
class DepthwiseRows {
  using L = Lanes<float>;
  using V = L::V;

 public:
  // Of `scratch`.
  static size_t scratch_bytes(const ConvGeometry& g) {
    return static_cast<size_t>(edge_count(g)) * sizeof(Edge) + static_cast<size_t>(g.width.in) * sizeof(float);
  }

  DepthwiseRows(const Clamp& clamp, const ConvGeometry& g, void* scratch)
      : g_(g),
        vectors_(row_vectors(g)),
        edges_(static_cast<Edge*>(scratch)),
        low_(L::splat(clamp.low)),
        high_(L::splat(clamp.high)) {
    Edge* edge = edges_;
    for (int64_t v = 0; v < vectors_; ++v) {
      for (int64_t kx = 0; kx < g.width.kernel; ++kx) *edge++ = {g.width.input_at(v * L::kCount, kx), g.width.in};
    }
    float* zeros = reinterpret_cast<float*>(edge);
    std::fill_n(zeros, g.width.in, 0.f);
    zeros_ = zeros;
  }

  void channel(const float* x, const float* weights, float bias, float* y) {
    weights_ = weights;
    bias_ = L::splat(bias);
    const int64_t height = g_.height.out;
    for (row_ = 0; row_ < height;) {
      const int count = rows_at_once(kTall, vectors_, height - row_);
      find_rows(x, row_, count);
      y_ = y + row_ * g_.width.out;
      rows_left_ = std::min<int64_t>(count, height - row_);
      int64_t v = 0;
      for (; v + 2 <= vectors_; v += 2) blocks<2>(count, v);
      if (v < vectors_) blocks<1>(count, v);
      row_ += rows_left_;
      if (stop_.after(kProductNs * static_cast<double>(rows_left_ * g_.width.out * g_.taps))) return;
    }
  }

 private:
  using Edge = EdgeLanes<kAcross>;

  static int64_t row_vectors(const ConvGeometry& g) { return (g.width.out + L::kCount - 1) / L::kCount; }
  static int64_t edge_count(const ConvGeometry& g) { return row_vectors(g) * g.width.kernel; }

  template <int kVectors>
  static constexpr int kTallRows = tall_rows(kTall, kVectors);

  void find_rows(const float* x, int64_t row, int count) {
    for (int i = 0; i < (count - 1) * kDown + kTall; ++i) {
      const int64_t at = g_.height.input_at(row, i);
      rows_[i] = at >= 0 && at < g_.height.in ? x + at * g_.width.in : zeros_;
    }
  }

  template <int kVectors>
  void blocks(int rows, int64_t v) const {
    switch (rows) {
      case 8:
        if constexpr (kTallRows<kVectors> == 8) return block<8, kVectors>(v);
        break;
      case 4:
        return block<4, kVectors>(v);
      case 2:
        return block<2, kVectors>(v);
      default:
        return block<1, kVectors>(v);
    }
  }

  template <int kRows, int kVectors>
  void block(int64_t v) const {
    const Axis& w = g_.width;
    V sums[kRows][kVectors];
    unrolled<kRows>([&](auto r) __attribute__((always_inline)) {
      unrolled<kVectors>([&](auto i) __attribute__((always_inline)) { sums[r][i] = L::zero(); });
    });
    for (int64_t kx = 0; kx < w.kernel; ++kx) {
      const int64_t first = w.input_at(v * L::kCount, kx);
      const int64_t last = first + (kVectors * L::kCount - 1) * kAcross;
      if (first >= 0 && last < w.in) {
        add_column(sums, kx, first, [](const float* p, auto) __attribute__((always_inline)) {
          return kAcross == 1 ? L::load(p) : load_even<float>(p);
        });
      } else {
        Edge edges[kVectors];
        for (int i = 0; i < kVectors; ++i) edges[i] = edges_[(v + i) * w.kernel + kx];
        add_column(sums, kx, first,
                   [&](const float* p, auto i) __attribute__((always_inline)) { return edges[i].load(p); });
      }
    }
    store(sums, v);
  }

  template <int kRows, int kVectors, class Load>
  [[gnu::always_inline]] void add_column(V (&sums)[kRows][kVectors], int64_t kx, int64_t first, Load&& load) const {
    V factors[kTall];
    unrolled<kTall>(
        [&](auto ky) __attribute__((always_inline)) { factors[ky] = L::splat(weights_[ky * g_.width.kernel + kx]); });
    unrolled<(kRows - 1) * kDown + kTall>([&](auto i) __attribute__((always_inline)) {
      const float* p = rows_[i] + first;
      unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
        const V x = load(p + v * L::kCount * kAcross, v);
        unrolled<kRows>([&](auto r) __attribute__((always_inline)) {
          const int tap = i - r * kDown;
          if (tap >= 0 && tap < kTall) sums[r][v] = L::mul_add(factors[tap], x, sums[r][v]);
        });
      });
    });
  }

  template <int kRows, int kVectors>
  [[gnu::always_inline]] void store(const V (&sums)[kRows][kVectors], int64_t v) const {
    unrolled<kRows>([&](auto r) __attribute__((always_inline)) {
      if (r >= rows_left_) return;
      unrolled<kVectors>([&](auto i) __attribute__((always_inline)) {
        const int64_t at = (v + i) * L::kCount, left = g_.width.out - at;
        const V value = L::min(high_, L::max(low_, L::add(sums[r][i], bias_)));
        float* to = y_ + r * g_.width.out + at;
        // What lies behind the end of a row is overwritten by the rows that come next.
        const bool overhangs = vectors_ <= kVectors && rows_below(r) * g_.width.out >= L::kCount - left;
        if (left >= L::kCount || overhangs) {
          L::store(to, value);
        } else {
          store_first(to, static_cast<int>(left), value);
        }
      });
    });
  }

  // Of the plane, below row r of those at hand.
  int64_t rows_below(int64_t r) const { return g_.height.out - 1 - row_ - r; }

  const ConvGeometry& g_;
  const int64_t vectors_;  // of a row
  Edge* edges_;            // [vector][kx]
  const float* zeros_;
  V low_, high_, bias_;
  const float* weights_ = nullptr;
  const float* rows_[(kMostRows - 1) * kDown + kTall];
  float* y_ = nullptr;
  int64_t row_ = 0, rows_left_ = 0;
  StopPoll stop_;
};

template <int kTall, int kDown, int kAcross>
void run_depthwise_rows(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvGeometry g(plan.shape);
  DepthwiseRows<kTall, kDown, kAcross> rows(early_clamp(plan, operands), g, operands.scratch);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t c = unit % plan.shape.out_channels;
    float* y = static_cast<float*>(operands.y) + unit * g.out_plane;
    rows.channel(static_cast<const float*>(operands.x) + unit * g.in_plane,
                 static_cast<const float*>(operands.packed_weights) + c * g.taps,
                 operands.bias == nullptr ? 0.f : static_cast<const float*>(operands.bias)[c], y);
    if (operands.addend != nullptr) finish_range(plan.clamp, beside(operands, y), y, 1, 0, g.out_plane);
  }
}

template <int kTall>
ConvRun depthwise_rows_for(int64_t down, int64_t across) {
  if (down == 1) return across == 1 ? run_depthwise_rows<kTall, 1, 1> : run_depthwise_rows<kTall, 1, 2>;
  return across == 1 ? run_depthwise_rows<kTall, 2, 1> : run_depthwise_rows<kTall, 2, 2>;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
