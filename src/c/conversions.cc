// Conversions between element types as functions in C, by the rules of kernels/convert.h.

#include <bit>

#include "base/float_formats.h"
#include "c/functions.h"
#include "c/types.h"

namespace treadle::c {

namespace {

// The formats of floats that are narrower than float, except for bfloat16 and float8e8m0.
const formats::Layout* layout_of(ElementType type) {
  switch (type) {
    case ElementType::kFloat16:
      return &formats::kFloat16;
    case ElementType::kFloat8e4m3fn:
      return &formats::kFloat8e4m3fn;
    case ElementType::kFloat8e4m3fnuz:
      return &formats::kFloat8e4m3fnuz;
    case ElementType::kFloat8e5m2:
      return &formats::kFloat8e5m2;
    case ElementType::kFloat8e5m2fnuz:
      return &formats::kFloat8e5m2fnuz;
    case ElementType::kFloat6e2m3:
      return &formats::kFloat6e2m3;
    case ElementType::kFloat6e3m2:
      return &formats::kFloat6e3m2;
    case ElementType::kFloat4e2m1:
      return &formats::kFloat4e2m1;
    default:
      return nullptr;
  }
}

// As formats::decode (base/float_formats.h).
void write_decode(Text& text, const std::string& name, ElementType type, const std::string& of_bits) {
  const formats::Layout& l = *layout_of(type);
  using Specials = formats::Specials;
  const int shift = 23 - l.mantissa_bits, sign_shift = 31 - l.exponent_bits - l.mantissa_bits;
  const uint32_t rebias = static_cast<uint32_t>(127 - l.bias) << 23;
  const float step = std::bit_cast<float>(static_cast<uint32_t>(128 - l.bias - l.mantissa_bits) << 23);
  text.open("static inline float {}({} x)", name, stored(type));
  text.line("const uint32_t magnitude = x & {:#x}u, sign = (x & {:#x}u) << {};", l.all_ones(), l.sign_bit(),
            sign_shift);
  text.line("const float tiny = (float)magnitude * {}; /* a subnormal number */", literal(step));
  text.line("const uint32_t normal = (magnitude << {}) + {:#010x}u;", shift, rebias);
  std::string bits = "normal";
  if (l.specials == Specials::kIeee) {
    text.line("const uint32_t special = 0x7f800000u | magnitude << {} | (magnitude > {:#x}u ? 0x00400000u : 0u);",
              shift, l.infinity());
    bits = fmt::format("magnitude < {:#x}u ? normal : special", l.infinity());
  } else if (l.specials == Specials::kNanOnly) {
    bits = fmt::format("magnitude == {:#x}u ? 0x7fc00000u : normal", l.nan());
  }
  text.line("const float size = magnitude < {:#x}u ? tiny : {}({});", 1u << l.mantissa_bits, of_bits, bits);
  if (l.specials == Specials::kUnsignedZero) text.line("if (x == {:#x}u) return {}(0xffc00000u);", l.nan(), of_bits);
  text.line("return sign != 0 ? -size : size;");
  text.close();
}

// As formats::encode.
void write_encode(Text& text, const std::string& name, ElementType type, bool saturate, const std::string& bits_of,
                  const std::string& of_bits) {
  const formats::Layout& l = *layout_of(type);
  using Specials = formats::Specials;
  const int shift = 23 - l.mantissa_bits, sign_shift = 31 - l.exponent_bits - l.mantissa_bits;
  const uint32_t rebias = static_cast<uint32_t>(127 - l.bias) << 23;
  const uint32_t smallest = static_cast<uint32_t>(128 - l.bias) << 23;
  const uint32_t magic = static_cast<uint32_t>(128 - l.bias + shift) << 23;
  const bool ieee = l.specials == Specials::kIeee;
  const uint32_t beyond = saturate || l.specials == Specials::kNone ? l.largest() : ieee ? l.infinity() : l.nan();
  const uint32_t round = rebias - ((uint32_t{1} << (shift - 1)) - 1);
  text.open("static inline {} {}(float x)", stored(type), name);
  text.line("const uint32_t bits = {}(x), magnitude = bits & 0x7fffffffu, sign = (bits & 0x80000000u) >> {};", bits_of,
            sign_shift);
  text.line("const uint32_t normal = (magnitude - {:#010x}u + ((magnitude >> {}) & 1u)) >> {};", round, shift, shift);
  text.line("const float shifted = {}(magnitude) + {}; /* rounds a subnormal number */", of_bits,
            literal(std::bit_cast<float>(magic)));
  text.line("const uint32_t tiny = {}(shifted) - {:#010x}u;", bits_of, magic);
  text.line("const uint32_t large = normal > {:#x}u || magnitude >= 0x7f800000u ? {:#x}u : normal;", l.largest(),
            beyond);
  text.line("const uint32_t number = magnitude < {:#010x}u ? tiny : large;", smallest);
  const std::string signed_number = l.specials == Specials::kUnsignedZero
                                        ? fmt::format("((number & {:#x}u) != 0 ? number | sign : number)", l.all_ones())
                                        : std::string("(number | sign)");
  std::string nan = fmt::format("{:#x}u", l.nan());
  if (ieee) nan += fmt::format(" | ((magnitude >> {}) & {:#x}u)", shift, (1u << l.mantissa_bits) - 1);
  if (ieee || l.specials == Specials::kNanOnly) nan += " | sign";
  text.line("return ({})(magnitude > 0x7f800000u ? {} : {});", stored(type), nan, signed_number);
  text.close();
}

// float8e8m0: as e8m0_to_float and float_to_e8m0.
void write_from_power(Text& text, const std::string& name, const std::string& of_bits) {
  text.open("static inline float {}(uint8_t x)", name);
  text.line("return {}(x == 255 ? 0x7fc00000u : x == 0 ? 0x00400000u : (uint32_t)x << 23);", of_bits);
  text.close();
}

void write_to_power(Text& text, const std::string& name, const kernels::CastOptions& options,
                    const std::string& bits_of) {
  text.open("static inline uint8_t {}(float x)", name);
  text.line("const uint32_t magnitude = {}(x) & 0x7fffffffu;", bits_of);
  text.line("if (magnitude > 0x7f800000u) return 255;");
  text.line("if (magnitude < 0x00400000u) return {};", options.saturate ? 0 : 255);
  // A subnormal number counts as if its exponent were -127 and its mantissa one bit shorter.
  text.line("const uint32_t tiny = (magnitude & 0x003fffffu) << 1;");
  text.line("const uint32_t fraction = magnitude < 0x00800000u ? tiny : magnitude & 0x007fffffu;");
  const std::string up = options.rounding == E8m0Rounding::kUp        ? "fraction != 0"
                         : options.rounding == E8m0Rounding::kNearest ? "fraction >= 0x400000u"
                                                                      : "0";
  text.line("const uint32_t code = (magnitude >> 23) + ({} ? 1u : 0u);", up);
  text.line("(void)fraction;");
  text.line("return (uint8_t)(code < 255 ? code : {}u);", options.saturate ? 254 : 255);
  text.close();
}

void write_to_bfloat(Text& text, const std::string& name, const std::string& bits_of) {
  text.open("static inline uint16_t {}(float x)", name);
  text.line("const uint32_t bits = {}(x);", bits_of);
  text.line("const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16, nan = (bits >> 16) | 0x40u;");
  text.line("return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);");
  text.close();
}

// A double as the float from which a narrower float is rounded: inexact floats are made odd, towards zero.
void write_to_odd(Text& text, const std::string& name, const std::string& bits_of, const std::string& of_bits) {
  text.open("static inline float {}(double x)", name);
  text.line("const float nearest = (float)x;");
  text.line("const double back = (double)nearest;");
  text.line("const int inexact = back != x && x == x;");
  text.line("const int away = inexact && (back < 0 ? -back : back) > (x < 0 ? -x : x);");
  text.line("const uint32_t bits = {}(nearest) - (away ? 1u : 0u);", bits_of);
  text.line("return {}(bits | (inexact ? 1u : 0u));", of_bits);
  text.close();
}

std::string_view lowest(ElementType type) {
  return type == ElementType::kInt64 ? "(-9223372036854775807 - 1)" : "(-2147483647 - 1)";
}

}  // namespace

std::string Functions::convert(ElementType from, ElementType to, const kernels::CastOptions& options) {
  if (from == to) return {};
  constexpr ElementType kF32 = ElementType::kFloat;
  const bool is_power = to == ElementType::kFloat8e8m0;
  auto name = fmt::format("{}_to_{}", suffix(from), suffix(to));
  if (!options.saturate && (is_power || (layout_of(to) && to != ElementType::kFloat16))) name += "_unsaturated";
  if (is_power && options.rounding != E8m0Rounding::kUp) {
    name += options.rounding == E8m0Rounding::kDown ? "_down" : "_nearest";
  }
  const std::string_view f = stored(from), t = stored(to);
  // Narrow floats by way of float.
  if (layout_of(from) && to == kF32) {
    const std::string of = of_bits(kF32);
    return get(name, [&](Text& text, const std::string& full) { write_decode(text, full, from, of); });
  }
  if (from == ElementType::kFloat8e8m0 && to == kF32) {
    const std::string of = of_bits(kF32);
    return get(name, [&](Text& text, const std::string& full) { write_from_power(text, full, of); });
  }
  if (from == ElementType::kBfloat16 && to == kF32) {
    const std::string of = of_bits(kF32);
    return get(name, [&](Text& text, const std::string& full) {
      text.open("static inline float {}(uint16_t x)", full);
      text.line("return {}((uint32_t)x << 16);", of);
      text.close();
    });
  }
  if (from == kF32 && layout_of(to)) {
    const std::string bits = bits_of(kF32), of = of_bits(kF32);
    const bool saturates = options.saturate && to != ElementType::kFloat16;
    return get(name, [&](Text& text, const std::string& full) { write_encode(text, full, to, saturates, bits, of); });
  }
  if (from == kF32 && is_power) {
    const std::string bits = bits_of(kF32);
    return get(name, [&](Text& text, const std::string& full) { write_to_power(text, full, options, bits); });
  }
  if (from == kF32 && to == ElementType::kBfloat16) {
    const std::string bits = bits_of(kF32);
    return get(name, [&](Text& text, const std::string& full) { write_to_bfloat(text, full, bits); });
  }
  const ElementType wide_from = wide_type(from), wide_to = wide_type(to);
  const auto chained = [&](std::initializer_list<std::string> steps) {
    std::string x = "x";
    for (const std::string& step : steps) {
      if (!step.empty()) x = fmt::format("{}({})", step, x);
    }
    return get(name, [&](Text& text, const std::string& full) {
      text.open("static inline {} {}({} x)", t, full, f);
      text.line("return {};", x);
      text.close();
    });
  };
  const bool is_narrow_float = is_float(to) && wide_to != to;
  if (wide_from == ElementType::kDouble && is_narrow_float) {
    const std::string bits = bits_of(kF32), of = of_bits(kF32);
    const std::string odd =
        get("f64_to_odd", [&](Text& text, const std::string& full) { write_to_odd(text, full, bits, of); });
    return chained({odd, convert(kF32, to, options)});
  }
  if (is_narrow_float || (is_float(from) && wide_from != from)) {
    return chained({convert(from, wide_from), wide_from == wide_to ? "" : convert(wide_from, wide_to),
                    convert(wide_to, to, options)});
  }
  // Integers of less than 8 bits keep the low bits.
  if (is_sub_byte(to)) {
    if (from != wide_to) return chained({convert(from, wide_to), convert(wide_to, to)});
    const int bits = info(to).file_bits, mask = (1 << bits) - 1, sign = 1 << (bits - 1);
    return get(name, [&](Text& text, const std::string& full) {
      text.open("static inline {} {}({} x)", t, full, f);
      if (is_signed_integer(to)) {
        text.line("return ({})((int32_t)(((uint32_t)x & {}u) ^ {}u) - {});", t, mask, sign, sign);
      } else {
        text.line("return ({})(x & {}u);", t, mask);
      }
      text.close();
    });
  }
  if (to == ElementType::kBool || from == ElementType::kBool || !is_float(from) || is_float(to)) {
    return get(name, [&](Text& text, const std::string& full) {
      text.open("static inline {} {}({} x)", t, full, f);
      if (to == ElementType::kBool) {
        text.line("return x != 0;");
      } else if (from == ElementType::kBool) {
        text.line("return x != 0;");
      } else {
        text.line("return ({})x;", t);
      }
      text.close();
    });
  }
  // Floats to integers.
  if (to == ElementType::kInt32 || to == ElementType::kInt64) {
    const std::string_view limit = to == ElementType::kInt64 ? "9223372036854775808.0" : "2147483648.0";
    const std::string_view end = from == kF32 ? "f" : "";
    return get(name, [&](Text& text, const std::string& full) {
      text.open("static inline {} {}({} x)", t, full, f);
      text.line("const int fits = x >= -{}{} && x < {}{};", limit, end, limit, end);
      text.line("return fits ? ({})x : {};", t, lowest(to));
      text.close();
    });
  }
  if (to == ElementType::kUint64) {
    const std::string whole = convert(from, ElementType::kInt64);
    const std::string_view end = from == kF32 ? "f" : "";
    return get(name, [&](Text& text, const std::string& full) {
      text.open("static inline {} {}({} x)", t, full, f);
      text.line("if (!(x >= 9223372036854775808.0{})) return (uint64_t){}(x);", end, whole);
      text.line("return x < 18446744073709551616.0{} ? (uint64_t)x : 0x8000000000000000u;", end);
      text.close();
    });
  }
  // Narrower signed integers take the low bits of int32, unsigned ones those of int64.
  const std::string whole = convert(from, is_signed_integer(to) ? ElementType::kInt32 : ElementType::kInt64);
  return get(name, [&](Text& text, const std::string& full) {
    text.open("static inline {} {}({} x)", t, full, f);
    text.line("return ({}){}(x);", t, whole);
    text.close();
  });
}

}  // namespace treadle::c
