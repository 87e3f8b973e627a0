#pragma once
// Maxima and sums of windows in two steps: first the input rows that a row of windows covers are combined into one row,
// column by column; then the columns of each window are combined into one element. The combined rows are stored in a
// buffer with padding around them, so neither step needs to treat borders. The first step makes a band of rows before
// the second reads any: a load right behind a store to a part of its bytes would wait for the store.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/pool_elements.h"
#include "kernels/isa/vector.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

inline constexpr int64_t kPoolRowElements = 4096;  // elements of the buffer
inline constexpr int64_t kPoolRows = 64;           // most rows that a window covers

enum class PoolTake : uint8_t {
  kMax,       // if no element is NaN
  kMaxOrNan,  // for any elements
  kSum,
};

template <class T, PoolTake kTake>
class PoolRows {
  using L = Lanes<T>;
  using V = typename L::V;

 public:
  static bool fits(const ConvGeometry& g) {
    return g.width.pad >= 0 && g.outer_taps * g.height.kernel <= kPoolRows && elements(g) <= kPoolRowElements;
  }

  // `divisors`: for each column of windows, the factor of the divisor that depends on the column; padded to whole
  // vectors.
  explicit PoolRows(const ConvGeometry& g, const T* divisors)
      : g_(g),
        divisors_(divisors),
        pitch_(elements(g)),
        band_(std::min(kPoolRowElements / pitch_, kMostRows)),
        span_(std::clamp<int64_t>(pitch_ - g.width.pad, 0, g.width.in)) {
    std::fill_n(buffer_, band_ * pitch_, kStart);
    for (int64_t i = 0; i < L::kCount; ++i) beyond_[i] = i < span_ ? T(-0.0) : kStart;
  }

  int64_t band() const { return band_; }

  // Chooses the planes of channel `x` that windows at this position of the outer axes cover.
  void choose_planes(const T* x, int64_t outer) {
    plane_count_ = 0;
    for (int64_t tap = 0; tap < g_.outer_taps; ++tap) {
      const int64_t plane = g_.outer_plane(outer, tap);
      if (plane >= 0) planes_[plane_count_++] = x + plane * g_.in_plane;
    }
  }

  // Computes rows [row, row + count) of windows in the chosen planes into y; `count` is at most band(). Elements behind
  // them, up to `end`, are overwritten. `divisor(row)`: the factor of the divisor that depends on the row.
  template <class Divisor>
  void run(int64_t row, int64_t count, T* y, const T* end, Divisor&& divisor) {
    for (int64_t r = 0; r < count; ++r) down(row + r, buffer_ + r * pitch_);
    for (int64_t r = 0; r < count; ++r, y += g_.width.out) {
      across(buffer_ + r * pitch_, y, end, kTake == PoolTake::kSum ? divisor(row + r) : T(1));
    }
  }

 private:
  static constexpr int64_t kMostRows = 16;
  static constexpr T kStart = kTake == PoolTake::kSum ? T(0) : -std::numeric_limits<T>::infinity();

  static V take(V best, V x) {
    if constexpr (kTake == PoolTake::kMax) return L::max(best, x);
    if constexpr (kTake == PoolTake::kMaxOrNan) return L::max_or_nan(best, x);
    return L::add(best, x);
  }

  // The length of a buffered row: all elements that the last vector of windows reads.
  static int64_t elements(const ConvGeometry& g) {
    const int64_t lanes = (g.width.out + L::kCount - 1) / L::kCount * L::kCount;
    const int64_t more = g.width.stride > 2 ? L::kCount : 0;  // windows at every offset need one vector more
    return std::max((lanes - 1) * g.width.stride + (g.width.kernel - 1) * g.width.dilation + 1 + more,
                    g.width.pad + int64_t{L::kCount});
  }

  void down(int64_t row, T* buffer) const {
    const T* rows[kPoolRows];
    int64_t count = 0;
    const Axis& h = g_.height;
    const int64_t first = h.input_at(row, 0), step = h.dilation * g_.width.in;
    const auto [begin, end] = inside(first, h.dilation, h.in, h.kernel);
    for (int64_t p = 0; p < plane_count_; ++p) {
      const T* from = planes_[p] + first * g_.width.in;
      for (int64_t ky = begin; ky < end; ++ky) rows[count++] = from + ky * step;
    }
    down(rows, count, buffer + g_.width.pad);
  }

  // Calls f with the number of taps, as a compile-time constant for frequent numbers.
  template <class F>
  static void with_taps(int64_t taps, F&& f) {
    if (taps == 2) return f(std::integral_constant<int64_t, 2>());
    if (taps == 3) return f(std::integral_constant<int64_t, 3>());
    f(taps);
  }

  void down(const T* const* rows, int64_t count, T* to) const {
    const V start = L::splat(kStart);
    if (span_ < L::kCount) {  // lanes behind the row get the padding's value
      const auto mask = L::mask(static_cast<int>(span_));
      const V beyond = L::load(beyond_);
      V best = start;
      for (int64_t r = 0; r < count; ++r) best = take(best, L::add(L::load(rows[r], mask), beyond));
      return L::store(to, best);
    }
    with_taps(count, [&](auto taps) {
      for (int64_t i = 0; i < span_; i += L::kCount) {
        const int64_t at = std::min(i, span_ - L::kCount);  // the last vector overlaps the one before
        V best = start;
        for (int64_t r = 0; r < taps; ++r) best = take(best, L::load(rows[r] + at));
        L::store(to + at, best);
      }
    });
  }

  void across(const T* from, T* y, const T* end, T row_divisor) const {
    const int64_t stride = g_.width.stride;
    if (stride == 1) {
      windows(y, end, row_divisor, [from](int64_t i, int64_t tap) { return L::load(from + i + tap); });
    } else if (stride == 2) {
      windows(y, end, row_divisor, [from](int64_t i, int64_t tap) { return load_even<T>(from + 2 * i + tap); });
    } else if (stride <= L::kCount) {
      some_of_all(from, y, row_divisor);
    } else {
      windows(y, end, row_divisor, [from, stride](int64_t i, int64_t tap) {
        T gathered[L::kCount];
        for (int64_t k = 0; k < L::kCount; ++k) gathered[k] = from[(i + k) * stride + tap];
        return L::load(gathered);
      });
    }
  }

  // Computes windows at every offset, whose elements are neighbours, and keeps one of every `stride`. Gathering vectors
  // from single elements is slower, because the load waits for their stores.
  [[gnu::noinline]] void some_of_all(const T* from, T* y, T row_divisor) const {
    alignas(kVectorBytes) T all[kPoolRowElements];
    const int64_t stride = g_.width.stride, dilation = g_.width.dilation;
    with_taps(g_.width.kernel, [&](auto taps) {
      for (int64_t i = 0; i <= (g_.width.out - 1) * stride; i += L::kCount) {
        V best = L::splat(kStart);
        for (int64_t kx = 0; kx < taps; ++kx) best = take(best, L::load(from + i + kx * dilation));
        L::store(all + i, best);
      }
    });
    for (int64_t i = 0; i < g_.width.out; ++i) {
      y[i] = kTake == PoolTake::kSum ? all[i * stride] / (row_divisor * divisors_[i]) : all[i * stride];
    }
  }

  template <class Read>
  void windows(T* y, const T* end, T row_divisor, Read&& read) const {
    with_taps(g_.width.kernel, [&](auto taps) {
      const int64_t count = g_.width.out, dilation = g_.width.dilation;
      const V start = L::splat(kStart), row = L::splat(row_divisor);
      for (int64_t i = 0; i < count; i += L::kCount) {
        V best = start;
        for (int64_t kx = 0; kx < taps; ++kx) best = take(best, read(i, kx * dilation));
        if constexpr (kTake == PoolTake::kSum) best = L::div(best, L::mul(row, L::load(divisors_ + i)));
        if (end - (y + i) >= L::kCount) {
          L::store(y + i, best);
        } else {
          store_first(y + i, static_cast<int>(count - i), best);
        }
      }
    });
  }

  const ConvGeometry& g_;
  const T* divisors_;
  int64_t pitch_;
  int64_t band_;
  int64_t span_;  // elements of an input row that some window reads
  int64_t plane_count_ = 0;
  const T* planes_[kPoolRows];
  alignas(kVectorBytes) T beyond_[L::kCount];
  alignas(kVectorBytes) T buffer_[kPoolRowElements];
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
