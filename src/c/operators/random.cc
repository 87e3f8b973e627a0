// Random numbers of a seed (kernels/random.h): uniform and normal ones, Bernoulli, Multinomial, Dropout in training.

#include <algorithm>

#include "c/values.h"
#include "c/writer.h"
#include "kernels/random_maths.h"
#include "op/op_def.h"
#include "ops/random/source.h"
#include "ops/random/uniform.h"

namespace treadle::c {

// For kernels/random_maths.h.
template <class V, class T>
V number_of(const Value<T>& x) {
  return V::make(fmt::format("({}){}", c_name<typename V::Scalar>(), x.v));
}
template <class V, class T>
V signed_number_of(const Value<T>& x) {
  return V::make(fmt::format("({})({}){}", c_name<typename V::Scalar>(), c_name<std::make_signed_t<T>>(), x.v));
}

namespace {

constexpr ElementType kDouble = ElementType::kDouble;
constexpr const char* kUnseeded = "it draws random numbers, and has no seed";

// f(key, block, half): words 0 and 1 of a block of the generator, or words 2 and 3.
std::string words_function(Functions& f) {
  return f.get("random_words", [](Text& text, const std::string& name) {
    text.line("/* Philox4x32-10 (Salmon et al., \"Parallel random numbers: as easy as 1, 2, 3\", SC 2011). */");
    text.open("static uint64_t {}(uint64_t key, uint64_t block, int half)", name);
    text.line("uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);");
    text.line("uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = 0, c3 = 0;");
    text.open("for (int turn = 0; turn < 10; ++turn)");
    text.line("const uint64_t a = (uint64_t)c0 * 0xd2511f53u, b = (uint64_t)c2 * 0xcd9e8d57u;");
    text.line("c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;");
    text.line("c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;");
    text.line("c1 = (uint32_t)b;");
    text.line("c3 = (uint32_t)a;");
    text.line("k0 += 0x9e3779b9u;");
    text.line("k1 += 0xbb67ae85u;");
    text.close();
    text.line("return half ? (uint64_t)c3 << 32 | c2 : (uint64_t)c1 << 32 | c0;");
    text.close();
  });
}

// f(key, i, bits): element i of a sequence, a whole number of `bits` bits.
std::string whole_function(Functions& f, ElementType type) {
  const std::string words = words_function(f);
  return f.get(fmt::format("random_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static {} {}(uint64_t key, uint64_t i, int bits)", stored(type), name);
    if (type == kDouble) {
      text.line("return (double)({}(key, i / 16 * 8 + i % 8, i % 16 >= 8) >> (64 - bits));", words);
    } else {
      text.line("const uint64_t pair = {}(key, i / 32 * 8 + i % 16 / 2, i % 32 >= 16);", words);
      text.line("return (float)((uint32_t)(pair >> (i % 2 * 32)) >> (32 - bits));");
    }
    text.close();
  });
}

// Element i of a sequence, uniform in [0, 1).
std::string unit(Functions& f, const random::Source& source) {
  return fmt::format("{}({}, (uint64_t)i, 53) * {}", whole_function(f, kDouble), literal(source.key), literal(0x1p-53));
}

void write_uniform(const Call& call, const random::Source& source) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims dims = call.result_dims();
  const int64_t count = product(dims, 0, dims.size());
  if (count == 0) return;
  const random::UniformRange range = random::uniform_range(call.node.attributes, call.result());
  const ElementType type = range.is_double ? kDouble : ElementType::kFloat;
  const auto number = [&](double x) { return range.is_double ? literal(x) : literal(static_cast<float>(x)); };
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", count);
  text.line("const {} a = {}({}, (uint64_t)i, {}) * {};", stored(type), whole_function(w.functions(), type),
            literal(source.key), range.bits, number(range.step));
  text.line("const {} x = {} + a;", stored(type), number(range.low));
  text.line("{}[i] = {};", call.out(),
            w.converted(type, call.result(), fmt::format("(x > {0} ? {0} : x)", number(range.most))));
  text.close();
}

// f(key, i): element i of a sequence, normal with mean 0 and variance 1.
template <class T>
std::string normal_function(Functions& f) {
  using V = Value<T>;
  using B = typename V::Bits;
  const std::string words = words_function(f);
  constexpr bool kDoubles = sizeof(T) == sizeof(double);
  return f.get(fmt::format("random_normal_{}", suffix(element_of<T>())), [&](Text& text, const std::string& name) {
    text.open("static {} {}(uint64_t key, uint64_t i)", stored(element_of<T>()), name);
    if (kDoubles) {
      text.line("const uint64_t block = i / 16 * 8 + i % 8;");
      text.line("const uint64_t x = {0}(key, block, 0), y = {0}(key, block, 1);", words);
    } else {
      text.line("const uint64_t block = i / 32 * 8 + i % 16 / 2, shift = i % 2 * 32;");
      text.line(
          "const uint32_t x = (uint32_t)({0}(key, block, 0) >> shift), y = (uint32_t)({0}(key, block, 1) >> shift);",
          words);
    }
    int names = 0;
    const Scope scope(text, f, names);
    const auto made = kernels::random_maths::normals<V>(B::of("x"), B::of("y"));
    text.line("return i % {} < {} ? {} : {};", kDoubles ? 16 : 32, kDoubles ? 8 : 16, made.first.v, made.second.v);
    text.close();
  });
}

void write_normal(const Call& call, const random::Source& source) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims dims = call.result_dims();
  const int64_t count = product(dims, 0, dims.size());
  if (count == 0) return;
  const float mean = call.node.attributes.get_float("mean", 0), scale = call.node.attributes.get_float("scale", 1);
  const bool doubles = call.result() == kDouble;
  const ElementType type = doubles ? kDouble : ElementType::kFloat;
  const std::string normal = doubles ? normal_function<double>(w.functions()) : normal_function<float>(w.functions());
  const auto number = [&](float x) { return doubles ? literal(static_cast<double>(x)) : literal(x); };
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", count);
  text.line("const {} a = {} * {}({}, (uint64_t)i);", stored(type), number(scale), normal, literal(source.key));
  text.line("{}[i] = {};", call.out(), w.converted(type, call.result(), fmt::format("{} + a", number(mean))));
  text.close();
}

void write_bernoulli(const Call& call, const random::Source& source) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims dims = call.dims(0);
  const int64_t count = product(dims, 0, dims.size());
  if (count == 0) return;
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", count);
  text.line("const double a = {};", unit(w.functions(), source));
  text.line("const double x = a < {} ? 1 : 0;", w.converted(call.type(0), kDouble, call.in(0) + "[i]"));
  text.line("{}[i] = {};", call.out(), w.converted(kDouble, call.result(), "x"));
  text.close();
}

// f(s, n): unnormalised logarithms become running sums of probabilities; their total.
std::string accumulate_function(Functions& f, const std::string& exp) {
  return f.get("running_probabilities", [&](Text& text, const std::string& name) {
    text.open("static double {}(double *s, ptrdiff_t n)", name);
    text.line("double largest = s[0], sum = 0;");
    text.line("for (ptrdiff_t i = 1; i < n; ++i) largest = largest < s[i] ? s[i] : largest;");
    text.open("for (ptrdiff_t i = 0; i < n; ++i)");
    text.line("sum = sum + {}(s[i] - largest);", exp);
    text.line("s[i] = sum;");
    text.close();
    text.line("return sum;");
    text.close();
  });
}

// f(s, n, x): the first of the running sums above x, or the last one.
std::string pick_function(Functions& f) {
  return f.get("first_above", [](Text& text, const std::string& name) {
    text.open("static int64_t {}(const double *s, ptrdiff_t n, double x)", name);
    text.line("ptrdiff_t low = 0, high = n;");
    text.open("while (low < high)");
    text.line("const ptrdiff_t middle = low + (high - low) / 2;");
    text.line("if (s[middle] > x) high = middle;");
    text.line("else low = middle + 1;");
    text.close();
    text.line("return low < n ? low : n - 1;");
    text.close();
  });
}

void write_multinomial(const Call& call, std::string& why) {
  Writer& w = call.writer;
  Text& text = w.text();
  const random::Source source = random::Source::of(call.node.attributes);
  const std::string exp = w.functions().library("exp");
  if (!source.seeded) why = kUnseeded;
  if (exp.empty()) why = "its probabilities are of the C library's exp (libm allows it)";
  const Dims x = call.dims(0), y = call.result_dims();
  if (!why.empty() || product(y, 0, y.size()) == 0) return;
  text.open("for (ptrdiff_t b = 0; b < {}; ++b)", y[0]);
  text.line("double *const s = (double *)(void *){};", w.scratch(static_cast<size_t>(x[1]) * sizeof(double)));
  text.line("for (ptrdiff_t k = 0; k < {}; ++k) s[k] = {};", x[1],
            w.converted(call.type(0), kDouble, fmt::format("{}[b * {} + k]", call.in(0), x[1])));
  text.line("const double total = {}(s, {});", accumulate_function(w.functions(), exp), x[1]);
  text.line("if (!(total > 0)) return {};", w.error("INVALID_VALUE"));
  text.open("for (ptrdiff_t i = b * {0}; i < (b + 1) * {0}; ++i)", y[1]);
  text.line("const double a = {};", unit(w.functions(), source));
  text.line("{}[i] = {};", call.out(),
            w.converted(ElementType::kInt64, call.result(),
                        fmt::format("{}(s, {}, a * total)", pick_function(w.functions()), x[1])));
  text.close();
  text.close();
}

void write_dropout(const Call& call, std::string& why) {
  enum Input : size_t { kData, kRatio, kTraining };
  Writer& w = call.writer;
  Text& text = w.text();
  const auto& attributes = call.node.attributes;
  const Dims dims = call.dims(kData);
  const int64_t count = product(dims, 0, dims.size());
  const bool has_input = call.has_input(kTraining);
  const Tensor* constant = call.constant(kTraining);
  const bool is_known = !has_input || constant;
  const bool trains = has_input ? constant && *constant->data<bool>()
                                : call.node.version->since < 7 && attributes.get_int("is_test", 0) == 0;
  const ElementType type = call.type(kData);
  const auto plain = [&] {
    const size_t bytes = static_cast<size_t>(count) * byte_width(type);
    if (call.has_output(0) && bytes > 0) text.line("{}", w.copy(call.out(0), call.in(kData), bytes));
    if (call.has_output(1)) {
      text.line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {};", count, call.out(1),
                w.converted(kDouble, call.result(1), "1.0"));
    }
  };
  if (is_known && !trains) return plain();
  const random::Source source = random::Source::of(attributes);
  if (!source.seeded) {
    why = kUnseeded;
    return;
  }
  if (count == 0) return;
  text.open("");
  text.line("const double q = {};", call.has_input(kRatio)
                                        ? w.converted(call.type(kRatio), kDouble, call.in(kRatio) + "[0]")
                                        : literal(static_cast<double>(attributes.get_float("ratio", 0.5F))));
  text.open("if ({}q != 0)", is_known ? "" : fmt::format("{}[0] && ", call.in(kTraining)));
  text.line("if (!(q > 0 && q < 1)) return {};", w.error("INVALID_VALUE"));
  text.line("const double scale = 1 / (1 - q);");
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", count);
  text.line("const int kept = {} >= q;", unit(w.functions(), source));
  if (call.has_output(0)) {
    text.line("const double scaled = {} * scale;", w.converted(type, kDouble, call.in(kData) + "[i]"));
    text.line("{}[i] = {};", call.out(0), w.converted(kDouble, call.result(0), "(kept ? scaled : 0.0)"));
  }
  if (call.has_output(1)) {
    text.line("{}[i] = {};", call.out(1), w.converted(kDouble, call.result(1), "(kept ? 1.0 : 0.0)"));
  }
  text.close();
  text.otherwise();
  plain();
  text.close();
  text.close();
}

// Writes by `kWrite`, if the node has a seed.
template <void (*kWrite)(const Call&, const random::Source&)>
void seeded(const Call& call, std::string& why) {
  const random::Source source = random::Source::of(call.node.attributes);
  if (source.seeded) return kWrite(call, source);
  why = kUnseeded;
}

constexpr OperatorRow kRows[] = {
    {"RandomUniform", "", seeded<write_uniform>},
    {"RandomUniformLike", "", seeded<write_uniform>},
    {"RandomNormal", "", seeded<write_normal>},
    {"RandomNormalLike", "", seeded<write_normal>},
    {"Bernoulli", "", seeded<write_bernoulli>},
    {"Multinomial", "", write_multinomial},
    {"Dropout", "", write_dropout},
};

}  // namespace

std::span<const OperatorRow> random_operators() {
  return kRows;
}

}  // namespace treadle::c
