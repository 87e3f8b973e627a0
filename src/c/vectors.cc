#include "c/vectors.h"

#include "c/types.h"

namespace treadle::c {

namespace {

// Integers are unsigned, so that they wrap.
std::string_view element_type(ElementType type) {
  if (is_float(type)) return stored(type);
  return byte_width(type) == 8 ? "uint64_t" : "uint32_t";
}

std::string full_name(std::string_view name, ElementType type, Width width) {
  const char* prefix = width == Width::kFull ? "" : width == Width::kBrief ? "brief_" : "single_";
  return fmt::format("{}{}_{}", prefix, name, suffix(type));
}

// The macro <PREFIX>_VECTOR_BYTES, which is not defined where a vector is one element. Processors whose vectors flush
// denormal numbers (NEON of 32-bit Arm), or for which compilers have no function that fuses, count as such.
std::string vector_bytes(Functions& functions) {
  const std::string macro = functions.upper_prefix() + "_VECTOR_BYTES";
  functions.get("vector_bytes", [&](Text& text, const std::string&) {
    text.line("/* Of a vector register; without one, vectors are single elements. For Windows, GCC aligns no stack");
    text.line("   to more than 16 bytes. */");
    text.line("#if defined(__GNUC__) && (!defined(__clang__) || __clang_major__ >= 17)");
    text.line("#if defined(__AVX512F__) && defined(__FMA__) && !defined(_WIN32)");
    text.line("#define {} 64", macro);
    text.line("#elif defined(__AVX__) && !defined(_WIN32)");
    text.line("#define {} 32", macro);
    text.line("#elif defined(__SSE2__) || defined(__aarch64__) || defined(__wasm_simd128__)");
    text.line("#define {} 16", macro);
    text.line("#endif");
    text.line("#endif");
  });
  return macro;
}

}  // namespace

Vectors vectors(Functions& functions, ElementType type, Width width) {
  const std::string bytes = vector_bytes(functions);
  const std::string_view t = stored(type), element = element_type(type);
  const auto named = [&](std::string_view name) { return full_name(name, type, width); };
  Vectors made;
  made.type = functions.get(named("vector"), [&](Text& text, const std::string& name) {
    if (width != Width::kSingle) {
      text.line("#if defined({})", bytes);
      text.line("typedef {} {} __attribute__((vector_size({})));", element, name,
                width == Width::kBrief ? "16" : bytes);
      text.line("#else");
    }
    text.line("typedef {} {};", element, name);
    if (width != Width::kSingle) text.line("#endif");
  });
  const std::string& v = made.type;
  made.lanes = fmt::format("(ptrdiff_t)(sizeof({}) / sizeof({}))", v, element);
  made.load = functions.get(named("load"), [&](Text& text, const std::string& name) {
    text.open("static inline {} {}(const {} *from)", v, name, t);
    text.line("{} x;", v);
    text.line("memcpy(&x, from, sizeof x);");
    text.line("return x;");
    text.close();
  });
  made.store = functions.get(named("store"), [&](Text& text, const std::string& name) {
    text.open("static inline void {}({} *to, {} x)", name, t, v);
    text.line("memcpy(to, &x, sizeof x);");
    text.close();
  });
  made.splat = functions.get(named("splat"), [&](Text& text, const std::string& name) {
    text.open("static inline {} {}({} x)", v, name, t);
    text.line("return {}x - ({}){{0}};", is_float(type) ? "" : fmt::format("({})", element), v);
    text.close();
  });
  return made;
}

std::string vector_multiply_add(Functions& functions, ElementType type, Width width) {
  const std::string v = vectors(functions, type, width).type, bytes = vector_bytes(functions);
  const bool fuses = is_float(type) && functions.fuses(), is_double = type == ElementType::kDouble;
  const std::string fused = fuses ? functions.multiply_add(type) : "";
  return functions.get(full_name("multiply_add", type, width), [&](Text& text, const std::string& name) {
    text.open("static inline {0} {1}({0} a, {0} b, {0} c)", v, name);
    if (fuses && width == Width::kSingle) {
      text.line("return {}(a, b, c);", fused);
      text.close();
      return;
    }
    if (fuses) {
      const char* p = is_double ? "pd" : "ps";
      text.line("#if !defined({})", bytes);
      text.line("return {}(a, b, c);", fused);
      text.line("#elif defined(__clang__) && (defined(__FMA__) || defined(__aarch64__))");
      text.line("return __builtin_elementwise_fma(a, b, c);");
      if (width == Width::kFull) {
        text.line("#elif {} == 64", bytes);
        text.line("return __builtin_ia32_vfmadd{}512_mask(a, b, c, {}, 4 /* rounds as usual */);", p,
                  is_double ? "0xff" : "-1");
        text.line("#elif {} == 32 && defined(__FMA__)", bytes);
        text.line("return __builtin_ia32_vfmadd{}256(a, b, c);", p);
      }
      text.line("#elif defined(__FMA__)");
      text.line("return __builtin_ia32_vfmadd{}(a, b, c);", p);
      text.line("#elif defined(__aarch64__)");
      text.line("return __builtin_aarch64_fma{}(a, b, c);", is_double ? "v2df" : "v4sf");
      text.line("#else");
    }
    text.line("const {} product = a * b;", v);
    text.line("return product + c;");
    if (fuses) text.line("#endif");
    text.close();
  });
}

}  // namespace treadle::c
