// Convolution of each channel with a kernel of its own (groups == channels, one or two axes). A channel is copied once
// into a buffer with its padding around it, one plane per phase of the strides as in implicit_gemm.h; the padding is
// written once for all channels. Positions are taken in stretches of kDepthwiseSums vectors that share the load of a
// tap's weight.

#include <algorithm>
#include <cstdint>

#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/conv/implicit_gemm.h"
#include "kernels/isa/conv/implicit_gemm_work.h"
#include "kernels/isa/conv/method.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

inline constexpr int kDepthwiseSums = 8;       // keep the units for multiply-adds busy
inline constexpr int64_t kDepthwiseTaps = 64;  // at most: their offsets are on the stack

struct DepthwiseLayout {
  explicit DepthwiseLayout(const ConvGeometry& g)
      : phases(g.height.phases() * g.width.phases()),
        pitch(g.width.out + g.width.largest_shift()),
        plane((g.height.out + g.height.largest_shift()) * pitch) {}
  template <class T>
  int64_t buffer() const {
    return phases * plane + kDepthwiseSums * Lanes<T>::kCount;
  }
  int64_t phases, pitch, plane;
};

template <class T>
class Depthwise {
  using L = Lanes<T>;

 public:
  Depthwise(const Clamp& clamp, const ConvGeometry& g, T* buffer)
      : g_(g),
        layout_(g),
        buffer_(buffer),
        low_(L::splat(static_cast<T>(clamp.low))),
        high_(L::splat(static_cast<T>(clamp.high))) {
    fill_zero(buffer_, layout_.buffer<T>());
    int64_t* offset = offset_;
    for (int64_t y = 0; y < g.height.kernel; ++y) {
      for (int64_t x = 0; x < g.width.kernel; ++x) {
        *offset++ = (g.height.phase_of(y) * g.width.phases() + g.width.phase_of(x)) * layout_.plane +
                    g.height.shift(y) * layout_.pitch + g.width.shift(x);
      }
    }
  }

  void channel(const T* x, const T* weights, T bias, T* y) const {
    copy_inside(x);
    const auto addend = L::splat(bias);
    const int64_t positions = (g_.height.out - 1) * layout_.pitch + g_.width.out;
    const int64_t vectors = (positions + L::kCount - 1) / L::kCount;
    Cursor at;
    int64_t v = 0;
    for (; v + kDepthwiseSums <= vectors; v += kDepthwiseSums) stretch<kDepthwiseSums>(v, weights, addend, y, at);
    if (vectors - v >= kDepthwiseSums / 2) {
      stretch<kDepthwiseSums / 2>(v, weights, addend, y, at);
      v += kDepthwiseSums / 2;
    }
    for (; v < vectors; ++v) stretch<1>(v, weights, addend, y, at);
  }

 private:
  // The output position that the next vector begins with.
  struct Cursor {
    int64_t row = 0, column = 0;
  };

  template <int kVectors>
  void stretch(int64_t v, const T* weights, typename L::V bias, T* y, Cursor& at) const {
    typename L::V sums[kVectors];
    unrolled<kVectors>([&](auto i) __attribute__((always_inline)) { sums[i] = L::zero(); });
    const T* from = buffer_ + v * L::kCount;
    const int64_t taps = g_.taps;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const auto weight = L::splat(weights[tap]);
      const T* p = from + offset_[tap];
      unrolled<kVectors>([&](auto i) __attribute__((always_inline)) {
        sums[i] = L::mul_add(weight, L::load(p + i * L::kCount), sums[i]);
      });
    }
    unrolled<kVectors>([&](auto i) __attribute__((always_inline)) {
      store(L::min(high_, L::max(low_, L::add(sums[i], bias))), y, at);
    });
  }

  // Lanes of one vector go to as many rows as they reach into; those between rows are dropped.
  void store(typename L::V value, T* y, Cursor& at) const {
    const int64_t width = g_.width.out;
    if (at.column + L::kCount <= width) {
      L::store(y + at.row * width + at.column, value);
      advance(at, L::kCount);
      return;
    }
    for (int64_t used = 0; used < L::kCount && at.row < g_.height.out;) {
      const int64_t left = L::kCount - used, kept = std::min(width - at.column, left);
      if (kept > 0) {
        L::store_from(y + at.row * width + at.column, static_cast<int>(used), static_cast<int>(kept), value);
      }
      used += advance(at, std::min(layout_.pitch - at.column, left));
    }
  }

  int64_t advance(Cursor& at, int64_t count) const {
    at.column += count;
    if (at.column == layout_.pitch) at = {at.row + 1, 0};
    return count;
  }

  void copy_inside(const T* x) const {
    const Axis& h = g_.height;
    const Axis& w = g_.width;
    T* plane = buffer_;
    for (int64_t phase_y = 0; phase_y < h.phases(); ++phase_y) {
      for (int64_t phase_x = 0; phase_x < w.phases(); ++phase_x, plane += layout_.plane) {
        const int64_t first_y = h.residue(phase_y) - h.pad, first_x = w.residue(phase_x) - w.pad;
        const auto [row_begin, row_end] = inside(first_y, h.stride, h.in, h.out + h.largest_shift());
        const auto [begin, end] = inside(first_x, w.stride, w.in, layout_.pitch);
        for (int64_t r = row_begin; r < row_end; ++r) {
          copy_strided(x + (first_y + r * h.stride) * w.in + first_x + begin * w.stride, w.stride, end - begin,
                       plane + r * layout_.pitch + begin);
        }
      }
    }
  }

  const ConvGeometry& g_;
  DepthwiseLayout layout_;
  T* buffer_;
  typename L::V low_, high_;
  int64_t offset_[kDepthwiseTaps];
};

template <class T>
void run_depthwise(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvGeometry g(plan.shape);
  const Depthwise<T> depthwise(early_clamp(plan, operands), g, static_cast<T*>(operands.scratch));
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t channel = unit % plan.shape.out_channels;
    T* y = static_cast<T*>(operands.y) + unit * g.out_channel();
    depthwise.channel(static_cast<const T*>(operands.x) + unit * g.in_channel(),
                      static_cast<const T*>(operands.packed_weights) + channel * g.taps,
                      operands.bias == nullptr ? T(0) : static_cast<const T*>(operands.bias)[channel], y);
    if (operands.addend != nullptr) finish_range(plan.clamp, beside(operands, y), y, 1, 0, g.out_channel());
  }
}

template <class T>
bool is_depthwise(const ConvGeometry& g) {
  return g.is_depthwise() && g.taps <= kDepthwiseTaps && g.height.out > 0 && g.width.out > 0 &&
         DepthwiseLayout(g).buffer<T>() * int64_t{sizeof(T)} <= kBandBytes;
}

template <class T>
void prepare_depthwise(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  plan.units = plan.shape.batch * plan.shape.out_channels;
  pack_as_given(plan, plan.shape.out_channels * g.taps, sizeof(T));
  plan.scratch_bytes = static_cast<size_t>(DepthwiseLayout(g).buffer<T>()) * sizeof(T);
  plan.run = run_depthwise<T>;
}

// Loads are rows of results, which end within a vector.
template <class T>
ConvWork depthwise_work(const ConvGeometry& g) {
  const DepthwiseLayout layout(g);
  const double channels = count(g.shape.batch * g.shape.out_channels);
  const int64_t vectors = vectors_of<T>((g.height.out - 1) * layout.pitch + g.width.out);
  ConvWork work;
  count_copy<T>(g, channels * count(layout.phases), 1, 1, layout.pitch, work);
  work.copies += count(vectors_of<T>(layout.buffer<T>()));  // zeros
  work.products = channels * stretch_products(g.taps, vectors);
  work.loads = channels * count(g.height.out);
  work.elements += count(g.taps);  // offsets
  work.begun += channels;
  work.stores = channels * count(vectors);
  return work;
}

}  // namespace

constexpr ConvMethod kDepthwise = {
    .name = "depthwise",
    .fits =
        [](const ConvGeometry& g, ComputeType type) {
          return has_nchw_operands(g) && (type == ComputeType::kF64 ? is_depthwise<double>(g) : is_depthwise<float>(g));
        },
    .work = work_by_type<depthwise_work<float>, depthwise_work<double>>,
    .order = sums_in<SumOrder::kWeights>,
    .prepare = prepare_by_type<prepare_depthwise<float>, prepare_depthwise<double>>,
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
