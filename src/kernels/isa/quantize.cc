#include "kernels/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/isa/byte_rounding.h"
#include "kernels/isa/rows.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

// Scales or zero points of a row: one, or one per element.
template <class T, size_t kStep>
struct Beside {
  const T* values;
  T first;

  explicit Beside(const T* from) : values(from), first(*from) {}
  template <class Lanes>
  TREADLE_ALWAYS_INLINE auto load(Lanes lanes, size_t i) const {
    using V = Vec<T, lanes.value>;
    if constexpr (kStep == 0) {
      return V(first);
    } else {
      return V::load(values + i);
    }
  }
};

// Calls fn(Beside) with the row's step as a compile-time constant.
template <class T, class Fn>
void with_step(const T* values, size_t step, Fn fn) {
  static constexpr T kNone{};
  if (!values) return fn(Beside<T, 0>(&kNone));
  step == 0 ? fn(Beside<T, 0>(values)) : fn(Beside<T, 1>(values));
}

template <class V, class W>
struct Loaded {
  V x;
  W beside;
};

template <class T, class B>
TREADLE_ALWAYS_INLINE auto loader(const T* x, const B& beside) {
  return [x, beside](auto lanes, size_t i) {
    using V = Vec<T, lanes.value>;
    using W = decltype(beside.load(lanes, i));
    return Loaded<V, W>{V::load(x + i), beside.load(lanes, i)};
  };
}

void divide(const float* x, const float* scale, size_t step, float* out, size_t n) {
  if (n == 0) return;
  with_step(scale, step, [=](auto scales) {
    row_loop<float, false>(n, loader(x, scales), [out](size_t i, auto in) { (in.x / in.beside).store(out + i); });
  });
}

void multiply(const float* x, const float* scale, size_t step, float* out, size_t n) {
  if (n == 0) return;
  with_step(scale, step, [=](auto scales) {
    row_loop<float, false>(n, loader(x, scales), [out](size_t i, auto in) { (in.x * in.beside).store(out + i); });
  });
}

void round(const float* x, const int32_t* zero, size_t step, float low, float high, int32_t* out, size_t n) {
  if (n == 0) return;
  // Adding and subtracting 1.5 * 2^23 rounds floats below 2^22 half to even.
  constexpr float kRound = 12582912.0f;
  with_step(zero, step, [=](auto zeros) {
    row_loop<float, false>(n, loader(x, zeros), [=](size_t i, auto in) {
      using V = decltype(in.x);
      const V z = convert_lanes<float>(in.beside), least = V(low) - z, most = V(high) - z;
      V v = select(in.x >= least, in.x, least);  // NaN gives `low`
      v = select(v <= most, v, most);
      v = (v + V(kRound)) - V(kRound);
      (convert_lanes<int32_t>(v) + in.beside).store(out + i);
    });
  });
}

void centre(const int32_t* x, const int32_t* zero, size_t step, float* out, size_t n) {
  if (n == 0) return;
  with_step(zero, step, [=](auto zeros) {
    row_loop<int32_t, false>(n, loader(x, zeros),
                             [out](size_t i, auto in) { convert_lanes<float>(in.x - in.beside).store(out + i); });
  });
}

template <class Byte>
void dequantize_row(const Byte* x, float scale, int32_t zero, float* out, size_t n) {
  row_loop<float, false>(
      n, [x](auto lanes, size_t i) { return Vec<Byte, lanes.value>::load(x + i); },
      [=](size_t i, auto in) {
        using Ints = Vec<int32_t, decltype(in)::kLanes>;
        const auto level = convert_lanes<float>(convert_lanes<int32_t>(in) - Ints(zero));
        (level * decltype(level)(scale)).store(out + i);
      });
}

void to_bytes(const float* x, float scale, int32_t zero, bool is_signed, void* out, size_t n) {
  const ByteRounding rounding(scale, zero, is_signed);
  constexpr size_t kRow = ByteRounding::kRow, kHalf = kRow / 2;
  auto* to = static_cast<std::byte*>(out);
  const auto put = [&](const float* from, std::byte* row) {
    rounding.put(RoundedFloats::load(from), RoundedFloats::load(from + kHalf), row);
  };
  size_t i = 0;
  for (; i + kRow <= n; i += kRow) put(x + i, to + i);
  if (i == n) return;
  float rest[kRow] = {};
  std::byte row[kRow];
  std::copy_n(x + i, n - i, rest);
  put(rest, row);
  std::copy_n(row, n - i, to + i);
}

void from_bytes(const void* x, float scale, int32_t zero, bool is_signed, float* out, size_t n) {
  if (is_signed) return dequantize_row(static_cast<const int8_t*>(x), scale, zero, out, n);
  dequantize_row(static_cast<const uint8_t*>(x), scale, zero, out, n);
}

template <int N>
FloatRange range_of(const float* x, size_t n) {
  using V = Vec<float, N>;
  V low(0.f), high(0.f);
  auto orderless = low != low;
  size_t i = 0;
  for (; i + N <= n; i += N) {
    const V v = V::load(x + i);
    low = select(v < low, v, low);
    high = select(v > high, v, high);
    orderless = orderless | (v != v);
  }
  float lows[N], highs[N];
  const V one(1.f), none(0.f);
  low.store(lows);
  select(orderless, one, none).store(highs);
  bool any = std::any_of(highs, highs + N, [](float is) { return is != 0; });
  high.store(highs);
  FloatRange range{*std::min_element(lows, lows + N), *std::max_element(highs, highs + N)};
  for (; i < n; ++i) {
    range = {std::min(range.low, x[i]), std::max(range.high, x[i])};
    any |= std::isnan(x[i]);
  }
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  return any ? FloatRange{kNaN, kNaN} : range;
}

FloatRange range(const float* x, size_t n) {
  return range_of<kFullLanes<float>>(x, n);
}

}  // namespace

const QuantizeKernels& quantize_kernels() {
  static constexpr QuantizeKernels kKernels{divide, multiply, round, centre, to_bytes, from_bytes, range};
  return kKernels;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
