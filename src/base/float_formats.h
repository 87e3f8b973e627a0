#pragma once
// Conversions between float and the narrow float formats of ONNX, one value at a time. All are constexpr, and have no
// branches where loops over them should become vector code. Rounding is to nearest, ties to even.

#include <bit>
#include <cstdint>
#include <limits>

namespace treadle {

namespace formats {

// The values of a format beside its finite ones.
enum class Specials : uint8_t {
  kIeee,          // infinities and NaNs at the highest exponent
  kNanOnly,       // one NaN pattern per sign (all ones), no infinity
  kUnsignedZero,  // a single NaN where -0 would be, no infinity
  kNone,          // finite values only
};

struct Layout {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;

  constexpr uint32_t sign_bit() const { return uint32_t{1} << (exponent_bits + mantissa_bits); }
  constexpr uint32_t all_ones() const { return sign_bit() - 1; }
  constexpr uint32_t infinity() const { return all_ones() & ~((uint32_t{1} << mantissa_bits) - 1); }  // kIeee
  constexpr uint32_t nan() const {
    switch (specials) {
      case Specials::kIeee:
        return infinity() | (uint32_t{1} << (mantissa_bits - 1));
      case Specials::kNanOnly:
        return all_ones();
      case Specials::kUnsignedZero:
      case Specials::kNone:
        return sign_bit();
    }
    return 0;
  }
  constexpr uint32_t largest() const {
    if (specials == Specials::kIeee) return infinity() - 1;
    return specials == Specials::kNanOnly ? all_ones() - 1 : all_ones();
  }
};

inline constexpr Layout kFloat16{5, 10, 15, Specials::kIeee};
inline constexpr Layout kFloat8e4m3fn{4, 3, 7, Specials::kNanOnly};
inline constexpr Layout kFloat8e4m3fnuz{4, 3, 8, Specials::kUnsignedZero};
inline constexpr Layout kFloat8e5m2{5, 2, 15, Specials::kIeee};
inline constexpr Layout kFloat8e5m2fnuz{5, 2, 16, Specials::kUnsignedZero};
inline constexpr Layout kFloat6e2m3{2, 3, 1, Specials::kNone};
inline constexpr Layout kFloat6e3m2{3, 2, 3, Specials::kNone};
inline constexpr Layout kFloat4e2m1{2, 1, 1, Specials::kNone};

// `saturate`: a value that is too large, infinities included, becomes the largest finite value. Otherwise it becomes
// infinity, or NaN in a format without infinity. A format with kNone always saturates, and turns NaN into -0.
template <Layout kLayout, bool kSaturate>
constexpr uint32_t encode(float value) {
  constexpr int kShift = 23 - kLayout.mantissa_bits;
  constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kLayout.bias) << 23;
  constexpr uint32_t kSmallestNormal = static_cast<uint32_t>(128 - kLayout.bias) << 23;
  // Adding this float rounds a subnormal at the format's last bit.
  constexpr uint32_t kSubnormalMagic = static_cast<uint32_t>(128 - kLayout.bias + kShift) << 23;
  constexpr bool kSaturates = kSaturate || kLayout.specials == Specials::kNone;
  constexpr uint32_t kOverflow = kSaturates                            ? kLayout.largest()
                                 : kLayout.specials == Specials::kIeee ? kLayout.infinity()
                                                                       : kLayout.nan();

  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t odd = (magnitude >> kShift) & 1;
  const uint32_t normal = (magnitude - kRebias + (uint32_t{1} << (kShift - 1)) - 1 + odd) >> kShift;
  const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kSubnormalMagic);
  const uint32_t subnormal = std::bit_cast<uint32_t>(shifted) - kSubnormalMagic;

  uint32_t code = magnitude < kSmallestNormal ? subnormal : normal;
  code = magnitude >= kSmallestNormal && (normal > kLayout.largest() || magnitude >= 0x7f800000u) ? kOverflow : code;
  const uint32_t sign = (bits >> 31) * kLayout.sign_bit();
  if constexpr (kLayout.specials == Specials::kUnsignedZero) {
    code |= (code & kLayout.all_ones()) != 0 ? sign : 0;
  } else {
    code |= sign;
  }
  uint32_t nan = kLayout.nan();
  if constexpr (kLayout.specials == Specials::kIeee) {  // keeps the part of a NaN's payload that fits
    nan |= (magnitude >> kShift) & ((uint32_t{1} << kLayout.mantissa_bits) - 1);
  }
  if constexpr (kLayout.specials == Specials::kIeee || kLayout.specials == Specials::kNanOnly) nan |= sign;
  return magnitude > 0x7f800000u ? nan : code;
}

template <Layout kLayout>
constexpr float decode(uint32_t code) {
  constexpr int kShift = 23 - kLayout.mantissa_bits;
  constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kLayout.bias) << 23;
  constexpr uint32_t kSubnormalStep = static_cast<uint32_t>(128 - kLayout.bias - kLayout.mantissa_bits) << 23;
  const uint32_t magnitude = code & kLayout.all_ones();
  const uint32_t sign = code & kLayout.sign_bit() ? 0x80000000u : 0;
  const float subnormal = static_cast<float>(static_cast<int32_t>(magnitude)) * std::bit_cast<float>(kSubnormalStep);
  uint32_t bits =
      magnitude >> kLayout.mantissa_bits ? (magnitude << kShift) + kRebias : std::bit_cast<uint32_t>(subnormal);
  bits |= sign;
  if constexpr (kLayout.specials == Specials::kIeee) {
    const uint32_t quiet = magnitude > kLayout.infinity() ? 0x00400000u : 0;
    bits = magnitude >= kLayout.infinity() ? sign | 0x7f800000u | (magnitude << kShift) | quiet : bits;
  } else if constexpr (kLayout.specials == Specials::kNanOnly) {
    bits = magnitude == kLayout.nan() ? sign | 0x7fc00000u : bits;
  } else if constexpr (kLayout.specials == Specials::kUnsignedZero) {
    bits = code == kLayout.nan() ? 0xffc00000u : bits;
  }
  return std::bit_cast<float>(bits);
}

}  // namespace formats

constexpr float half_to_float(uint16_t half) {
  return formats::decode<formats::kFloat16>(half);
}
constexpr uint16_t float_to_half(float value) {
  return static_cast<uint16_t>(formats::encode<formats::kFloat16, false>(value));
}

constexpr float bfloat16_to_float(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}
constexpr uint16_t float_to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

// float8e8m0 holds powers of two, 2^(code - 127), and NaN (255).
enum class E8m0Rounding : uint8_t { kUp, kDown, kNearest };

constexpr float e8m0_to_float(uint8_t code) {
  const uint32_t bits = code == 255 ? 0x7fc00000u : code == 0 ? 0x00400000u : static_cast<uint32_t>(code) << 23;
  return std::bit_cast<float>(bits);
}

// The sign is ignored. kNearest rounds ties up. With `saturate`, zero and values below the smallest power become the
// smallest power, infinity and values above the largest power the largest; without it, these become NaN.
constexpr uint8_t float_to_e8m0(float value, E8m0Rounding rounding, bool saturate) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 255;
  if (magnitude < 0x00400000u) return saturate ? 0 : 255;
  // A subnormal at or above 2^-127 is treated as if its exponent were -127 and its mantissa one bit shorter.
  const bool subnormal = magnitude < 0x00800000u;
  const uint32_t exponent = magnitude >> 23;
  const uint32_t fraction = subnormal ? (magnitude & 0x003fffffu) << 1 : magnitude & 0x007fffffu;
  const bool up =
      rounding == E8m0Rounding::kUp ? fraction != 0 : rounding == E8m0Rounding::kNearest && fraction >= 0x400000u;
  const uint32_t code = exponent + (up ? 1 : 0);
  return static_cast<uint8_t>(code < 255 ? code : saturate ? 254 : 255);
}

// Rounds to odd: an inexact result gets its last bit set. Rounding the result again to a format that is at least two
// bits shorter gives the same as rounding `value` itself.
constexpr float double_to_float_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  const bool inexact = back != value && value == value;
  const double magnitude = value < 0 ? -value : value;
  const double back_magnitude = back < 0 ? -back : back;
  bits -= inexact && back_magnitude > magnitude ? 1 : 0;  // towards zero; from infinity to the largest finite value
  bits |= inexact ? 1 : 0;
  return std::bit_cast<float>(bits);
}

}  // namespace treadle
