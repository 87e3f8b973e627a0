// Conversions between element types as functions in C, by the rules of kernels/convert.h.

#include "c/functions.h"
#include "c/types.h"

namespace treadle::c {

namespace {

// float16: as formats::decode and formats::encode (base/float_formats.h).
void write_from_half(Text& text, const std::string& name, const std::string& of_bits) {
  text.open("static inline float {}(uint16_t half)", name);
  text.line("const uint32_t magnitude = half & 0x7fffu, sign = (half & 0x8000u) << 16;");
  text.line("const float tiny = (float)magnitude * 5.9604645e-8f; /* a subnormal number */");
  text.line("const uint32_t special = 0x7f800000u | magnitude << 13 | (magnitude > 0x7c00u ? 0x00400000u : 0u);");
  text.line("const uint32_t normal = (magnitude << 13) + 0x38000000u;");
  text.line("const float size = magnitude < 0x0400u ? tiny : {}(magnitude < 0x7c00u ? normal : special);", of_bits);
  text.line("return sign != 0 ? -size : size;");
  text.close();
}

void write_to_half(Text& text, const std::string& name, const std::string& bits_of, const std::string& of_bits) {
  text.open("static inline uint16_t {}(float x)", name);
  text.line("const uint32_t bits = {}(x), magnitude = bits & 0x7fffffffu, sign = (bits & 0x80000000u) >> 16;", bits_of);
  text.line("const uint32_t normal = (magnitude - 0x37fff001u + ((magnitude >> 13) & 1u)) >> 13;");
  text.line("const float shifted = {}(magnitude) + 0.5f; /* rounds a subnormal number */", of_bits);
  text.line("const uint32_t tiny = {}(shifted) - 0x3f000000u;", bits_of);
  text.line("const uint32_t large = normal > 0x7bffu || magnitude >= 0x7f800000u ? 0x7c00u : normal;");
  text.line("const uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);");
  text.line("const uint32_t number = magnitude < 0x38800000u ? tiny : large;");
  text.line("return (uint16_t)(sign | (magnitude > 0x7f800000u ? nan : number));");
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

std::string Functions::convert(ElementType from, ElementType to) {
  if (from == to) return {};
  const auto name = fmt::format("{}_to_{}", suffix(from), suffix(to));
  const std::string_view f = stored(from), t = stored(to);
  constexpr ElementType kF32 = ElementType::kFloat;
  // Floats of 16 bits by way of float.
  if (from == ElementType::kFloat16 && to == kF32) {
    const std::string of = of_bits(kF32);
    return get(name, [&](Text& text, const std::string& full) { write_from_half(text, full, of); });
  }
  if (from == ElementType::kBfloat16 && to == kF32) {
    const std::string of = of_bits(kF32);
    return get(name, [&](Text& text, const std::string& full) {
      text.open("static inline float {}(uint16_t x)", full);
      text.line("return {}((uint32_t)x << 16);", of);
      text.close();
    });
  }
  if (from == kF32 && to == ElementType::kFloat16) {
    const std::string bits = bits_of(kF32), of = of_bits(kF32);
    return get(name, [&](Text& text, const std::string& full) { write_to_half(text, full, bits, of); });
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
    return chained({odd, convert(kF32, to)});
  }
  if (is_narrow_float || (is_float(from) && wide_from != from)) {
    return chained(
        {convert(from, wide_from), wide_from == wide_to ? "" : convert(wide_from, wide_to), convert(wide_to, to)});
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
  // Narrower integers take the low bits of int32, uint32 those of int64.
  const std::string whole = convert(from, to == ElementType::kUint32 ? ElementType::kInt64 : ElementType::kInt32);
  return get(name, [&](Text& text, const std::string& full) {
    text.open("static inline {} {}({} x)", t, full, f);
    text.line("return ({}){}(x);", t, whole);
    text.close();
  });
}

}  // namespace treadle::c
