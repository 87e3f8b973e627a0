// Depthwise convolution that leaves the size of the plane as it is (strides 1, padding as wide as the kernel reaches),
// where the instruction set loads under a mask for free: positions of the output and of the input run in step, each tap
// reads at a constant distance, and lanes whose tap falls off the plane are masked out. Nothing is copied.
//
// Table: masks [tap][vector].

#if defined(__AVX512F__)

#include <algorithm>
#include <cstdint>

#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/conv/implicit_gemm.h"
#include "kernels/isa/conv/method.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

inline constexpr int64_t kMaskedTaps = 64;  // at most: their distances are on the stack
inline constexpr int kMaskedSums = 8;       // vectors that share the load of a tap's weight

template <class T>
struct MaskedLayout {
  using Mask = typename Lanes<T>::Mask;
  explicit MaskedLayout(const ConvGeometry& g)
      : vectors((g.out_plane + Lanes<T>::kCount - 1) / Lanes<T>::kCount),
        mask_bytes(vectors * g.taps * int64_t{sizeof(Mask)}) {}
  int64_t vectors, mask_bytes;
};

bool is_masked_depthwise(const ConvGeometry& g) {
  const auto keeps_size = [](const Axis& a) { return a.stride == 1 && a.in == a.out; };
  return g.is_depthwise() && g.taps <= kMaskedTaps && g.out_plane > 0 && keeps_size(g.height) && keeps_size(g.width);
}

template <class T>
void make_masked_table(const ConvPlan& plan, void* table) {
  const ConvGeometry g(plan.shape);
  const MaskedLayout<T> layout(g);
  typename Lanes<T>::Mask* mask = static_cast<typename Lanes<T>::Mask*>(table);
  for (int64_t tap = 0; tap < g.taps; ++tap) {
    for (int64_t v = 0; v < layout.vectors; ++v) {
      unsigned bits = 0;
      for (int lane = 0; lane < Lanes<T>::kCount; ++lane) {
        const int64_t position = v * Lanes<T>::kCount + lane;
        const int64_t y = g.height.input_at(position / g.width.out, tap / g.width.kernel);
        const int64_t x = g.width.input_at(position % g.width.out, tap % g.width.kernel);
        const bool valid = position < g.out_plane && y >= 0 && y < g.height.in && x >= 0 && x < g.width.in;
        bits |= static_cast<unsigned>(valid) << lane;
      }
      *mask++ = static_cast<typename Lanes<T>::Mask>(bits);
    }
  }
}

template <class T>
class MaskedChannel {
  using L = Lanes<T>;

 public:
  MaskedChannel(const Clamp& clamp, const ConvGeometry& g, const void* table)
      : clamp_(clamp),
        g_(g),
        vectors_(MaskedLayout<T>(g).vectors),
        masks_(static_cast<const typename L::Mask*>(table)) {
    for (int64_t tap = 0; tap < g.taps; ++tap) {
      distance_[tap] =
          g.height.input_at(0, tap / g.width.kernel) * g.width.in + g.width.input_at(0, tap % g.width.kernel);
    }
  }

  void run(const T* x, const T* weights, T bias, T* y) const {
    int64_t v = 0;
    for (; v + kMaskedSums <= vectors_; v += kMaskedSums) stretch<kMaskedSums>(v, x, weights, bias, y);
    if (vectors_ - v >= kMaskedSums / 2) {
      stretch<kMaskedSums / 2>(v, x, weights, bias, y);
      v += kMaskedSums / 2;
    }
    for (; v < vectors_; ++v) stretch<1>(v, x, weights, bias, y);
  }

 private:
  template <int kVectors>
  void stretch(int64_t v, const T* x, const T* weights, T bias, T* y) const {
    typename L::V sums[kVectors];
    unrolled<kVectors>([&](auto i) __attribute__((always_inline)) { sums[i] = L::zero(); });
    const typename L::Mask* masks = masks_ + v;
    const int64_t taps = g_.taps;
    for (int64_t tap = 0; tap < taps; ++tap, masks += vectors_) {
      const auto weight = L::splat(weights[tap]);
      const T* p = x + v * L::kCount + distance_[tap];
      unrolled<kVectors>([&](auto i) __attribute__((always_inline)) {
        sums[i] = L::mul_add(weight, L::load(p + i * L::kCount, masks[i]), sums[i]);
      });
    }
    const auto addend = L::splat(bias), low = L::splat(static_cast<T>(clamp_.low)),
               high = L::splat(static_cast<T>(clamp_.high));
    unrolled<kVectors>([&](auto i) __attribute__((always_inline)) {
      const int64_t left = g_.out_plane - (v + i) * L::kCount;
      const auto value = L::min(high, L::max(low, L::add(sums[i], addend)));
      if (left >= L::kCount) {
        L::store(y + (v + i) * L::kCount, value);
      } else {
        L::store(y + (v + i) * L::kCount, L::mask(static_cast<int>(left)), value);
      }
    });
  }

  Clamp clamp_;
  const ConvGeometry& g_;
  int64_t vectors_;
  const typename L::Mask* masks_;
  int64_t distance_[kMaskedTaps];
};

template <class T>
void run_masked(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvGeometry g(plan.shape);
  const MaskedChannel<T> channel(early_clamp(plan, operands), g, operands.table);
  const T* weights = static_cast<const T*>(operands.packed_weights);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t c = unit % plan.shape.out_channels;
    T* y = static_cast<T*>(operands.y) + unit * g.out_plane;
    channel.run(static_cast<const T*>(operands.x) + unit * g.in_plane, weights + c * g.taps,
                operands.bias == nullptr ? T(0) : static_cast<const T*>(operands.bias)[c], y);
    if (operands.addend != nullptr) finish_range(plan.clamp, beside(operands, y), y, 1, 0, g.out_plane);
  }
}

template <class T>
void prepare_masked(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  plan.units = plan.shape.batch * plan.shape.out_channels;
  pack_as_given(plan, plan.shape.out_channels * g.taps, sizeof(T));
  plan.table_bytes = static_cast<size_t>(MaskedLayout<T>(g).mask_bytes);
  plan.run = run_masked<T>;
  plan.make_table = make_masked_table<T>;
}

bool fits(const ConvGeometry& g, ComputeType) {
  return is_masked_depthwise(g) && has_nchw_operands(g);
}

// A load under a mask takes a load of the mask, and is one vector in two cycles. Loads are those of planes that, with
// their masks, do not fit the first-level cache.
template <class T>
ConvWork work(const ConvGeometry& g) {
  constexpr int64_t kReads = 4, kNearBytes = 48 << 10;
  const MaskedLayout<T> layout(g);
  const double channels = count(g.shape.batch * g.shape.out_channels);
  const int64_t vectors = vectors_of<T>(g.out_plane);
  ConvWork work;
  work.products = channels * stretch_products(g.taps, vectors, kReads);
  if (layout.mask_bytes + g.in_plane * int64_t{sizeof(T)} > kNearBytes) work.loads = channels * count(vectors * g.taps);
  work.stores = channels * count(vectors);
  work.begun = channels;
  return work;
}

}  // namespace

constexpr ConvMethod kDepthwiseMasked = {
    .name = "depthwise-masked",
    .fits = fits,
    .work = work_by_type<work<float>, work<double>>,
    .order = sums_in<SumOrder::kWeights>,
    .prepare = prepare_by_type<prepare_masked<float>, prepare_masked<double>>,
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE

#endif
