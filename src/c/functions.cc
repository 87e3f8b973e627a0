#include "c/functions.h"

#include <algorithm>
#include <cctype>

#include "c/types.h"

namespace treadle::c {

std::string Functions::get(std::string_view name, const std::function<void(Text&, const std::string&)>& write) {
  const auto known = names_.find(name);
  if (known != names_.end()) return known->second;
  std::string full = taken_.add(fmt::format("{}_{}", prefix_, name));
  names_.emplace(name, full);
  Text text;
  write(text, full);  // functions that it asks for are added meanwhile
  text.blank();
  text_ += text.str();
  return full;
}

std::string Functions::get_alike(std::string_view name, const std::function<void(Text&, const std::string&)>& write) {
  constexpr char kName[] = "@";  // stands for the name, which depends on the text
  Text text;
  write(text, kName);
  std::string& full = alike_[fmt::format("{} {}", name, text.str())];
  if (!full.empty()) return full;
  std::string wanted(name);
  for (int i = 2; names_.contains(wanted); ++i) wanted = fmt::format("{}_{}", name, i);
  return full = get(wanted, [&](Text& made, const std::string& given) {
           std::string lines = text.str();
           lines.replace(lines.find(kName), 1, given);
           made.append(lines);
         });
}

std::string Functions::converted(ElementType from, ElementType to, const std::string& x,
                                 const kernels::CastOptions& options) {
  const std::string function = convert(from, to, options);
  return function.empty() ? x : fmt::format("{}({})", function, x);
}

std::string Functions::upper_prefix() const {
  std::string upper = prefix_;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

int Functions::lanes(ElementType type) const {
  const int bytes = isa_ == Isa::kAvx512 ? 64 : isa_ == Isa::kAvx2 ? 32 : 16;
  return bytes / static_cast<int>(byte_width(type));
}

namespace {

std::string_view bits_type(ElementType type) {
  return type == ElementType::kDouble ? "uint64_t" : "uint32_t";
}

// The preprocessor's condition that the processor takes roots of this type.
std::string has_square_roots(ElementType type) {
  const bool is_double = type == ElementType::kDouble;
  return fmt::format(
      "defined(__SSE2__) || defined(__aarch64__) || defined(__wasm__) || (__riscv_flen >= {}) || \\\n    "
      "(defined(__ARM_FP) && (__ARM_FP & {}))",
      is_double ? 64 : 32, is_double ? 8 : 4);
}

}  // namespace

std::string Functions::bits_of(ElementType type) {
  return get(fmt::format("bits_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static inline {} {}({} x)", bits_type(type), name, stored(type));
    text.line("{} bits;", bits_type(type));
    text.line("memcpy(&bits, &x, sizeof bits);");
    text.line("return bits;");
    text.close();
  });
}

std::string Functions::of_bits(ElementType type) {
  return get(fmt::format("{}_of_bits", suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static inline {} {}({} bits)", stored(type), name, bits_type(type));
    text.line("{} x;", stored(type));
    text.line("memcpy(&x, &bits, sizeof x);");
    text.line("return x;");
    text.close();
  });
}

std::string Functions::multiply_add(ElementType type) {
  const bool is_double = type == ElementType::kDouble;
  return get(fmt::format("fma_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.line("/* a * b + c, rounded once where the processor has an instruction for that. */");
    text.line("#if defined(__FMA__) || defined(__aarch64__) || (__riscv_flen >= {}) || \\", is_double ? 64 : 32);
    text.line("    (defined(__ARM_FEATURE_FMA) && (__ARM_FP & {}))", is_double ? 8 : 4);
    text.line("#define {}(a, b, c) {}(a, b, c)", name, is_double ? "__builtin_fma" : "__builtin_fmaf");
    text.line("#else");
    text.open("static inline {} {}({} a, {} b, {} c)", stored(type), name, stored(type), stored(type), stored(type));
    text.line("const {} product = a * b;", stored(type));
    text.line("return product + c;");
    text.close();
    text.line("#endif");
  });
}

// Whole numbers near x, for |x| where floats have fractions. `correction` makes the wanted one of the nearest.
std::string Functions::rounding(std::string_view name, ElementType type, std::string_view correction) {
  const bool is_double = type == ElementType::kDouble;
  const std::string bits = bits_of(type), value = of_bits(type);
  return get(fmt::format("{}_{}", name, suffix(type)), [&](Text& text, const std::string& full) {
    const std::string_view t = stored(type), b = bits_type(type);
    const std::string_view sign = is_double ? "0x8000000000000000u" : "0x80000000u";
    const std::string_view whole = is_double ? "4503599627370496.0" : "8388608.0f";  // no fractions from here on
    const std::string_view one = is_double ? "1.0" : "1.0f", zero = is_double ? "0.0" : "0.0f";
    text.open("static inline {} {}({} x)", t, full, t);
    text.line("const {} sign = {}(x) & {};", b, bits, sign);
    text.line("const {} size = {}({}(x) ^ sign);", t, value, bits);
    text.line("const {} shifted = size + {};", t, whole);
    text.line("const {} near = shifted - {};", t, whole);
    text.line("const {} nearest = {}({}(near) | sign);", t, value, bits);
    if (correction.empty()) {
      text.line("return size < {} ? nearest : x;", whole);
    } else {
      const bool down = correction == "down";
      text.line("const {} step = nearest {} x ? {} : {};", t, down ? ">" : "<", one, zero);
      text.line("const {} moved = nearest {} step;", t, down ? "-" : "+");
      text.line("const {} result = {}({}(moved) | sign);", t, value, bits);
      text.line("return size < {} ? result : x;", whole);
    }
    text.close();
  });
}

std::string Functions::floor(ElementType type) {
  return rounding("floor", type, "down");
}
std::string Functions::ceil(ElementType type) {
  return rounding("ceil", type, "up");
}
std::string Functions::round_even(ElementType type) {
  return rounding("round", type, "");
}

std::string Functions::sqrt(ElementType type) {
  const bool is_double = type == ElementType::kDouble;
  const std::string bits = bits_of(type), value = of_bits(type);
  return get(fmt::format("sqrt_{}", suffix(type)), [&](Text& text, const std::string& name) {
    const std::string_view t = stored(type);
    text.line("/* By the processor's instruction. GCC's function calls the C library's for the sake of errno. */");
    text.line("#if defined(__GNUC__) && ({})", has_square_roots(type));
    text.line("#if defined(__clang__) && __has_builtin(__builtin_elementwise_sqrt)");
    text.line("#define {}(x) __builtin_elementwise_sqrt(x)", name);
    text.line("#elif defined(__NO_MATH_ERRNO__) || defined(__wasm__)");
    text.line("#define {}(x) {}(x)", name, is_double ? "__builtin_sqrt" : "__builtin_sqrtf");
    text.line("#else");
    text.open("static inline {} {}({} x)", t, name, t);
    text.line("#if defined(__SSE2__)");
    text.line("typedef {} vector __attribute__((vector_size(16)));", t);
    text.line("return __builtin_ia32_{}((vector){{x}})[0];", is_double ? "sqrtsd" : "sqrtss");
    text.line("#else");
    text.line("{} root;", t);
    text.line("#if defined(__aarch64__)");
    text.line("__asm__(\"fsqrt %{0}0, %{0}1\" : \"=w\"(root) : \"w\"(x));", is_double ? "d" : "s");
    text.line("#elif defined(__riscv)");
    text.line("__asm__(\"fsqrt.{} %0, %1\" : \"=f\"(root) : \"f\"(x));", is_double ? "d" : "s");
    text.line("#else");
    text.line("__asm__({} : \"={}\"(root) : \"{}\"(x));", is_double ? "\"vsqrt.f64 %P0, %P1\"" : "\"vsqrt.f32 %0, %1\"",
              is_double ? "w" : "t", is_double ? "w" : "t");
    text.line("#endif");
    text.line("return root;");
    text.line("#endif");
    text.close();
    text.line("#endif");
    text.line("#else");
    // Bit by bit, with one bit more than the result has, and a last one for what is left.
    const std::string_view u = is_double ? "uint64_t" : "uint32_t";
    const int mantissa = is_double ? 52 : 23, bias = is_double ? 1023 : 127;
    text.line("/* The root of the mantissa bit by bit, rounded to nearest. */");
    text.open("static inline {} {}({} x)", t, name, t);
    text.line("{} m = {}(x), root = 0, rest = 0;", u, bits);
    text.line("int exponent, i;");
    text.line("if (!(x > 0)) return x == 0 ? x : {} / {};", is_double ? "0.0" : "0.0f", is_double ? "0.0" : "0.0f");
    text.line("exponent = (int)(m >> {});", mantissa);
    text.line("if (exponent == {}) return x;", 2 * bias + 1);
    text.line("m &= (({})1 << {}) - 1;", u, mantissa);
    text.line("if (exponent > 0) m |= ({})1 << {};", u, mantissa);
    text.line("else exponent = 1;");
    text.line("while (!(m >> {})) m <<= 1, --exponent;", mantissa);
    text.line("exponent -= {};", bias);
    text.line("if (exponent & 1) m <<= 1, --exponent;");
    text.open("for (i = 0; i < {}; ++i)", mantissa + 2);
    // Two bits of m * 4^k at a time.
    text.line("const {} pair = (m >> {}) & 3u;", u, mantissa);
    text.line("{} trial;", u);
    text.line("m = (m & ((({})1 << {}) - 1)) << 2;", u, mantissa);
    text.line("rest = rest << 2 | pair;");
    text.line("trial = root << 2 | 1;");
    text.line("root <<= 1;");
    text.line("if (rest >= trial) rest -= trial, root |= 1;");
    text.close();
    text.line("root = (root >> 1) + ((root & 1) != 0 && (rest != 0 || (root & 2) != 0));");
    text.line("return {}(root + (({})(exponent / 2 + {}) << {}));", value, u, bias - 1, mantissa);
    text.close();
    text.line("#endif");
  });
}

std::string Functions::power_of_size(ElementType type) {
  if (!libm_) return {};
  calls_libm_ = true;
  const std::string absolute = operation(kernels::ElementwiseOp::kAbs, type);
  return get(fmt::format("power_of_size_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static inline {0} {1}({0} x, {0} exponent)", stored(type), name);
    text.line("return pow{}({}(x), exponent);", type == ElementType::kFloat ? "f" : "", absolute);
    text.close();
  });
}

bool Functions::can_fail(kernels::ElementwiseOp op, ElementType type) {
  return !is_float(type) && kernels::info(op).can_fail;
}

}  // namespace treadle::c
