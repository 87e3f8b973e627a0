#include <limits>
#include <type_traits>
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "base/float_formats.h"
#include "kernels/isa/tables.h"
#include "kernels/isa/vector.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

// One value at a time, in loops that the compiler turns into vector code.
template <class From, class To, auto kConvert>
void row(const void* in, void* out, size_t n) {
  if constexpr (sizeof(From) == sizeof(To)) {  // may be in place
    const From* x = static_cast<const From*>(in);
    To* y = static_cast<To*>(out);
    for (size_t i = 0; i < n; ++i) y[i] = kConvert(x[i]);
  } else {
    const From* __restrict x = static_cast<const From*>(in);
    To* __restrict y = static_cast<To*>(out);
    for (size_t i = 0; i < n; ++i) y[i] = kConvert(x[i]);
  }
}

// --- float16 ---

void half_to_float_row(const void* in, void* out, size_t n) {
  const uint16_t* x = static_cast<const uint16_t*>(in);
  float* y = static_cast<float*>(out);
  size_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  }
#endif
  for (; i < n; ++i) y[i] = half_to_float(x[i]);
}

void float_to_half_row(const void* in, void* out, size_t n) {
  const float* x = static_cast<const float*>(in);
  uint16_t* y = static_cast<uint16_t*>(out);
  size_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), half);
  }
#endif
  for (; i < n; ++i) y[i] = float_to_half(x[i]);
}

// --- floats of 8 bits and less: decoded by table ---

template <auto kDecode>
struct Decoded {
  float values[256];
  constexpr Decoded() : values() {
    for (int i = 0; i < 256; ++i) values[i] = kDecode(static_cast<uint8_t>(i));
  }
};

template <auto kDecode>
void decode_row(const void* in, void* out, size_t n) {
  static constexpr Decoded<kDecode> kTable;
  const uint8_t* __restrict x = static_cast<const uint8_t*>(in);
  float* __restrict y = static_cast<float*>(out);
  for (size_t i = 0; i < n; ++i) y[i] = kTable.values[x[i]];
}

template <formats::Layout kLayout>
void add_narrow_float(KernelTable& table, ElementType type) {
  const auto at = static_cast<int>(type);
  table.load[at] = decode_row<[](uint8_t code) { return formats::decode<kLayout>(code); }>;
  table.store[at] =
      row<float, uint8_t, [](float x) { return static_cast<uint8_t>(formats::encode<kLayout, true>(x)); }>;
  table.store_unsaturated[at] =
      row<float, uint8_t, [](float x) { return static_cast<uint8_t>(formats::encode<kLayout, false>(x)); }>;
}

template <bool kSaturate, E8m0Rounding kRounding>
constexpr ConvertRow kStoreE8m0 = row<float, uint8_t, [](float x) { return float_to_e8m0(x, kRounding, kSaturate); }>;

void add_floats(KernelTable& table) {
  const auto at = [](ElementType type) { return static_cast<int>(type); };
  table.load[at(ElementType::kFloat16)] = half_to_float_row;
  table.store[at(ElementType::kFloat16)] = float_to_half_row;
  table.load[at(ElementType::kBfloat16)] = row<uint16_t, float, [](uint16_t x) { return bfloat16_to_float(x); }>;
  table.store[at(ElementType::kBfloat16)] = row<float, uint16_t, [](float x) { return float_to_bfloat16(x); }>;
  add_narrow_float<formats::kFloat8e4m3fn>(table, ElementType::kFloat8e4m3fn);
  add_narrow_float<formats::kFloat8e4m3fnuz>(table, ElementType::kFloat8e4m3fnuz);
  add_narrow_float<formats::kFloat8e5m2>(table, ElementType::kFloat8e5m2);
  add_narrow_float<formats::kFloat8e5m2fnuz>(table, ElementType::kFloat8e5m2fnuz);
  add_narrow_float<formats::kFloat6e2m3>(table, ElementType::kFloat6e2m3);
  add_narrow_float<formats::kFloat6e3m2>(table, ElementType::kFloat6e3m2);
  add_narrow_float<formats::kFloat4e2m1>(table, ElementType::kFloat4e2m1);

  table.load[at(ElementType::kFloat8e8m0)] = decode_row<[](uint8_t code) { return e8m0_to_float(code); }>;
  auto& e8m0 = table.store_e8m0;
  e8m0[0][0] = kStoreE8m0<false, E8m0Rounding::kUp>;
  e8m0[0][1] = kStoreE8m0<false, E8m0Rounding::kDown>;
  e8m0[0][2] = kStoreE8m0<false, E8m0Rounding::kNearest>;
  e8m0[1][0] = kStoreE8m0<true, E8m0Rounding::kUp>;
  e8m0[1][1] = kStoreE8m0<true, E8m0Rounding::kDown>;
  e8m0[1][2] = kStoreE8m0<true, E8m0Rounding::kNearest>;
  table.store[at(ElementType::kFloat8e8m0)] = e8m0[1][0];

  table.f64_to_f32_odd = row<double, float, [](double x) { return double_to_float_odd(x); }>;
}

// --- narrow integers ---

template <class Narrow, class Wide>
void add_integer(KernelTable& table, ElementType type) {
  table.load[static_cast<int>(type)] = row<Narrow, Wide, [](Narrow x) { return static_cast<Wide>(x); }>;
  table.store[static_cast<int>(type)] = row<Wide, Narrow, [](Wide x) { return static_cast<Narrow>(x); }>;
}

template <int kBits>
void add_sub_byte(KernelTable& table, ElementType signed_type, ElementType unsigned_type) {
  add_integer<int8_t, int32_t>(table, signed_type);
  add_integer<uint8_t, uint32_t>(table, unsigned_type);
  constexpr int kMask = (1 << kBits) - 1;
  constexpr int kSign = 1 << (kBits - 1);
  table.store[static_cast<int>(signed_type)] =
      row<int32_t, int8_t, [](int32_t x) { return static_cast<int8_t>(((x & kMask) ^ kSign) - kSign); }>;
  table.store[static_cast<int>(unsigned_type)] =
      row<uint32_t, uint8_t, [](uint32_t x) { return static_cast<uint8_t>(x & kMask); }>;
}

// --- between compute types ---

struct Bool {
  uint8_t byte;
};

// Truncates values with low <= value < high. Any other value, NaN included, gives the lowest integer.
template <class To, class From>
constexpr To truncate(From value) {
  constexpr From kHigh = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
  return value >= -kHigh && value < kHigh ? static_cast<To>(value) : std::numeric_limits<To>::min();
}

template <class To, class From>
constexpr To convert_value(From value) {
  if constexpr (std::is_same_v<From, Bool>) {
    return static_cast<To>(value.byte != 0 ? 1 : 0);
  } else if constexpr (std::is_same_v<To, Bool>) {
    return Bool{static_cast<uint8_t>(value != 0 ? 1 : 0)};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (std::is_signed_v<To>) {
      return truncate<To>(value);
    } else if constexpr (sizeof(To) == 4) {
      return static_cast<To>(truncate<int64_t>(value));
    } else {
      constexpr From kHalf = static_cast<From>(uint64_t{1} << 63);
      const bool upper = value >= kHalf;
      return static_cast<To>(truncate<int64_t>(upper ? value - kHalf : value)) ^
             (upper && value < 2 * kHalf ? To{1} << 63 : 0);
    }
  } else {
    return static_cast<To>(value);
  }
}

// Floats to integers of 32 bits and less, through Wide. For values in the range of int32, a plain conversion gives the
// same; this is checked for a stretch at a time.
template <class From, class Wide, class To>
void truncate_row(const void* in, void* out, size_t n) {
  constexpr size_t kStretch = 256;
  constexpr From kHigh = static_cast<From>(int64_t{1} << 31);
  const From* __restrict x = static_cast<const From*>(in);
  To* __restrict y = static_cast<To*>(out);
  for (size_t begin = 0; begin < n; begin += kStretch) {
    const size_t end = begin + kStretch < n ? begin + kStretch : n;
    bool beyond = false;
    for (size_t i = begin; i < end; ++i) beyond |= !(x[i] > -kHigh) | !(x[i] < kHigh);
    if (beyond) [[unlikely]] {
      for (size_t i = begin; i < end; ++i) y[i] = static_cast<To>(convert_value<Wide>(x[i]));
    } else {
      for (size_t i = begin; i < end; ++i) y[i] = static_cast<To>(static_cast<int32_t>(x[i]));
    }
  }
}

template <class From, class To>
void add_cast(KernelTable& table, ComputeType from, ComputeType to) {
  if constexpr (!std::is_same_v<From, To>) {
    table.cast[static_cast<int>(from)][static_cast<int>(to)] =
        row<From, To, [](From x) { return convert_value<To, From>(x); }>;
  }
}

template <class From>
void add_truncations(KernelTable& table, ElementType from) {
  ConvertRow* const to = table.direct[static_cast<int>(from)];
  to[static_cast<int>(ElementType::kInt8)] = truncate_row<From, int32_t, int8_t>;
  to[static_cast<int>(ElementType::kInt16)] = truncate_row<From, int32_t, int16_t>;
  to[static_cast<int>(ElementType::kUint8)] = truncate_row<From, uint32_t, uint8_t>;
  to[static_cast<int>(ElementType::kUint16)] = truncate_row<From, uint32_t, uint16_t>;
}

// Conversions between types of the same width.
void add_relabelings(KernelTable& table) {
  const auto set = [&](ElementType from, ElementType to, ConvertRow direct) {
    table.direct[static_cast<int>(from)][static_cast<int>(to)] = direct;
  };
  constexpr ConvertRow kBytes = row<uint8_t, uint8_t, [](uint8_t x) { return x; }>;
  constexpr ConvertRow kWords = row<uint16_t, uint16_t, [](uint16_t x) { return x; }>;
  constexpr ConvertRow kFlags = row<uint8_t, uint8_t, [](uint8_t x) { return static_cast<uint8_t>(x != 0 ? 1 : 0); }>;
  set(ElementType::kInt8, ElementType::kUint8, kBytes);
  set(ElementType::kUint8, ElementType::kInt8, kBytes);
  set(ElementType::kInt16, ElementType::kUint16, kWords);
  set(ElementType::kUint16, ElementType::kInt16, kWords);
  for (const ElementType byte : {ElementType::kInt8, ElementType::kUint8}) {
    set(byte, ElementType::kBool, kFlags);
    set(ElementType::kBool, byte, kFlags);
  }
}

template <class From>
void add_casts(KernelTable& table, ComputeType from) {
  add_cast<From, float>(table, from, ComputeType::kF32);
  add_cast<From, double>(table, from, ComputeType::kF64);
  add_cast<From, int32_t>(table, from, ComputeType::kI32);
  add_cast<From, int64_t>(table, from, ComputeType::kI64);
  add_cast<From, uint32_t>(table, from, ComputeType::kU32);
  add_cast<From, uint64_t>(table, from, ComputeType::kU64);
  add_cast<From, Bool>(table, from, ComputeType::kBool);
}

template <class From, class To>
void complex_row(const void* in, void* out, size_t n) {
  row<From, To, [](From x) { return static_cast<To>(x); }>(in, out, 2 * n);
}

}  // namespace

void add_conversions(KernelTable& table) {
  add_floats(table);
  add_integer<uint8_t, uint32_t>(table, ElementType::kUint8);
  add_integer<int8_t, int32_t>(table, ElementType::kInt8);
  add_integer<uint16_t, uint32_t>(table, ElementType::kUint16);
  add_integer<int16_t, int32_t>(table, ElementType::kInt16);
  add_sub_byte<4>(table, ElementType::kInt4, ElementType::kUint4);
  add_sub_byte<2>(table, ElementType::kInt2, ElementType::kUint2);
  add_casts<float>(table, ComputeType::kF32);
  add_casts<double>(table, ComputeType::kF64);
  add_casts<int32_t>(table, ComputeType::kI32);
  add_casts<int64_t>(table, ComputeType::kI64);
  add_casts<uint32_t>(table, ComputeType::kU32);
  add_casts<uint64_t>(table, ComputeType::kU64);
  add_casts<Bool>(table, ComputeType::kBool);
  table.cast[static_cast<int>(ComputeType::kF64)][static_cast<int>(ComputeType::kI32)] =
      truncate_row<double, int32_t, int32_t>;
  add_truncations<float>(table, ElementType::kFloat);
  add_truncations<double>(table, ElementType::kDouble);
  add_relabelings(table);
  table.complex64_to_128 = complex_row<float, double>;
  table.complex128_to_64 = complex_row<double, float>;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
