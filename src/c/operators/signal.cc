// DFT and STFT (ops/math/stft.cc, ops/math/fourier.cc): in double; roots of unity are tables.

#include <vector>

#include "c/writer.h"
#include "op/op_def.h"
#include "ops/math/fourier.h"

namespace treadle::c {

namespace {

constexpr ElementType kDouble = ElementType::kDouble;

// f(a, b, c): c = a * b, complex numbers as pairs. If both parts are NaN, infinite factors make an infinite product, as
// C says (Annex G).
std::string product_of_complex(Functions& f) {
  const std::string bits = f.bits_of(kDouble), value = f.of_bits(kDouble);
  const std::string sign = f.get("with_sign_of", [&](Text& text, const std::string& name) {
    text.open("static inline double {}(double size, double sign)", name);
    text.line("return {0}(({1}(size) & 0x7fffffffffffffffu) | ({1}(sign) & 0x8000000000000000u));", value, bits);
    text.close();
  });
  const std::string infinite = f.get("is_infinite", [](Text& text, const std::string& name) {
    text.open("static inline int {}(double x)", name);
    text.line("return x == x && x - x != 0;");
    text.close();
  });
  const std::string rescue = f.get("complex_with_infinity", [&](Text& text, const std::string& name) {
    text.open("static void {}(double a, double b, double c, double d, double *z)", name);
    text.line("const double infinity = 1.0 / 0.0;");
    text.line("const int any = {0}(a * c) || {0}(b * d) || {0}(a * d) || {0}(b * c);", infinite);
    text.line("int found = 0;");
    for (const auto& [x, y, u, v] : {std::array{"a", "b", "c", "d"}, std::array{"c", "d", "a", "b"}}) {
      text.open("if ({0}({1}) || {0}({2}))", infinite, x, y);
      for (const char* part : {x, y}) text.line("{0} = {1}({2}({0}) ? 1 : 0, {0});", part, sign, infinite);
      for (const char* part : {u, v}) text.line("if ({0} != {0}) {0} = {1}(0, {0});", part, sign);
      text.line("found = 1;");
      text.close();
    }
    text.open("if (!found && any)");
    for (const char* part : {"a", "b", "c", "d"}) text.line("if ({0} != {0}) {0} = {1}(0, {0});", part, sign);
    text.line("found = 1;");
    text.close();
    text.open("if (found)");
    text.line("const double ac = a * c, bd = b * d, ad = a * d, bc = b * c;");
    text.line("z[0] = infinity * (ac - bd);");
    text.line("z[1] = infinity * (ad + bc);");
    text.close();
    text.close();
  });
  return f.get("complex_product", [&](Text& text, const std::string& name) {
    text.open("static inline void {}(const double *x, const double *y, double *z)", name);
    text.line("const double a = x[0], b = x[1], c = y[0], d = y[1];");
    text.line("const double ac = a * c, bd = b * d, ad = a * d, bc = b * c;");
    text.line("z[0] = ac - bd;");
    text.line("z[1] = ad + bc;");
    text.line("if (z[0] != z[0] && z[1] != z[1]) {}(a, b, c, d, z);", rescue);
    text.close();
  });
}

std::string plan_type(Functions& f) {
  return f.get("fourier_plan", [](Text& text, const std::string& name) {
    text.line(
        "/* Roots of unity of a transform of n numbers. If n is no power of two: of one of m numbers, which is, and");
    text.line("   a chirp and its transform. */");
    text.line("typedef struct {{ ptrdiff_t n, m; const double *roots, *chirp, *filter; }} {};", name);
  });
}

// f(x, n, roots): transforms in place; n is a power of two.
std::string halving_function(Functions& f) {
  const std::string multiply = product_of_complex(f);
  return f.get("transform_by_halving", [&](Text& text, const std::string& name) {
    text.open("static void {}(double *x, ptrdiff_t n, const double *roots)", name);
    text.open("for (ptrdiff_t i = 1, j = 0; i < n; ++i)");
    text.line("ptrdiff_t bit = n / 2;");
    text.line("for (; j & bit; bit /= 2) j ^= bit;");
    text.line("j ^= bit;");
    text.open("for (int part = 0; i < j && part < 2; ++part)");
    text.line("const double moved = x[2 * i + part];");
    text.line("x[2 * i + part] = x[2 * j + part];");
    text.line("x[2 * j + part] = moved;");
    text.close();
    text.close();
    text.open("for (ptrdiff_t size = 2; size <= n; size *= 2)");
    text.line("const ptrdiff_t half = size / 2, step = n / size;");
    text.open("for (ptrdiff_t begin = 0; begin < n; begin += size)");
    text.open("for (ptrdiff_t k = 0; k < half; ++k)");
    text.line("double *const low = x + 2 * (begin + k), *const high = low + 2 * half;");
    text.line("const double a = low[0], b = low[1];");
    text.line("double turned[2];");
    text.line("{}(high, roots + 2 * k * step, turned);", multiply);
    text.line("low[0] = a + turned[0], low[1] = b + turned[1];");
    text.line("high[0] = a - turned[0], high[1] = b - turned[1];");
    text.close();
    text.close();
    text.close();
    text.close();
  });
}

// f(x, inverse, plan, work): transforms in place, without scaling.
std::string transform_function(Functions& f) {
  const std::string plan = plan_type(f), halving = halving_function(f), multiply = product_of_complex(f);
  return f.get("transform", [&](Text& text, const std::string& name) {
    text.open("static void {}(double *x, int inverse, const {} *plan, double *work)", name, plan);
    text.line("const ptrdiff_t n = plan->n, m = plan->m;");
    text.line("if (n < 2) return;");
    const auto conjugate = [&](const char* numbers, const char* count) {
      text.line("for (ptrdiff_t k = 0; k < {1}; ++k) {0}[2 * k + 1] = -{0}[2 * k + 1];", numbers, count);
    };
    text.open("if (inverse)");
    conjugate("x", "n");
    text.close();
    text.open("if (m == 0)");
    text.line("{}(x, n, plan->roots);", halving);
    text.otherwise();
    text.line("for (ptrdiff_t k = 0; k < n; ++k) {}(x + 2 * k, plan->chirp + 2 * k, work + 2 * k);", multiply);
    text.line("for (ptrdiff_t k = 2 * n; k < 2 * m; ++k) work[k] = 0;");
    text.line("{}(work, m, plan->roots);", halving);
    text.open("for (ptrdiff_t k = 0; k < m; ++k)");
    text.line("double moved[2];");
    text.line("{}(work + 2 * k, plan->filter + 2 * k, moved);", multiply);
    text.line("work[2 * k] = moved[0], work[2 * k + 1] = -moved[1];");
    text.close();
    text.line("{}(work, m, plan->roots);", halving);
    conjugate("work", "m");
    text.open("for (ptrdiff_t k = 0; k < n; ++k)");
    text.line("double moved[2];");
    text.line("{}(work + 2 * k, plan->chirp + 2 * k, moved);", multiply);
    text.line("x[2 * k] = moved[0] / (double)m, x[2 * k + 1] = moved[1] / (double)m;");
    text.close();
    text.close();
    text.open("if (inverse)");
    conjugate("x", "n");
    text.close();
    text.close();
  });
}

struct Line {
  ElementType type{};
  int64_t parts_in = 1, parts_out = 2;
  bool windowed = false;
};

// f(x, given, x_step, window, inverse, mirrored, plan, line, y, wanted, y_step): one line, whose elements are steps
// apart, in complex numbers.
std::string line_function(Writer& w, const Line& of) {
  Functions& f = w.functions();
  const std::string plan = plan_type(f), transform = transform_function(f);
  const std::string_view t = stored(of.type);
  const auto widen = [&](const std::string& x) { return w.converted(of.type, kDouble, x); };
  const std::string name = fmt::format("transform_line_{}_{}_{}{}", of.parts_in, of.parts_out,
                                       of.windowed ? "windowed_" : "", suffix(of.type));
  return f.get(name, [&](Text& text, const std::string& full) {
    text.open(
        "static void {0}(const {1} *x, ptrdiff_t given, ptrdiff_t x_step,{2} int inverse, int mirrored, "
        "const {3} *plan, double *line, {1} *y, ptrdiff_t wanted, ptrdiff_t y_step)",
        full, t, of.windowed ? fmt::format(" const {} *window,", t) : "", plan);
    text.line("const ptrdiff_t n = plan->n;");
    text.line("const double scale = inverse ? 1 / (double)n : 1;");
    text.open("for (ptrdiff_t k = 0; k < n; ++k)");
    text.line("line[2 * k] = line[2 * k + 1] = 0;");
    text.line("if (k >= given) continue;");
    text.line("line[2 * k] = {};", widen(fmt::format("x[k * x_step * {}]", of.parts_in)));
    if (of.parts_in == 2) text.line("line[2 * k + 1] = {};", widen("x[k * x_step * 2 + 1]"));
    text.close();
    text.open("for (ptrdiff_t k = n / 2 + 1; mirrored && k < n; ++k)");
    text.line("line[2 * k] = line[2 * (n - k)];");
    text.line("line[2 * k + 1] = -line[2 * (n - k) + 1];");
    text.close();
    if (of.windowed) {
      text.open("for (ptrdiff_t k = 0; k < n; ++k)");
      text.line("const double factor = {};", widen("window[k]"));
      text.line("line[2 * k] = line[2 * k] * factor, line[2 * k + 1] = line[2 * k + 1] * factor;");
      text.close();
    }
    text.line("{}(line, inverse, plan, line + 2 * n);", transform);
    text.open("for (ptrdiff_t k = 0; k < wanted; ++k)");
    for (int64_t part = 0; part < of.parts_out; ++part) {
      const std::string at = part == 0 ? "" : " + 1";
      text.line("y[k * y_step * {}{}] = {};", of.parts_out, at,
                w.converted(kDouble, of.type, fmt::format("line[2 * k{}] * scale", at)));
    }
    text.close();
    text.close();
  });
}

std::string table(Writer& w, const char* name, std::span<const Fourier::Complex> numbers) {
  if (numbers.empty()) return "NULL";
  return w.table(name, kDouble, numbers.data(), 2 * numbers.size());
}

// Declares the plan of a transform: its name.
std::string declare_plan(Writer& w, const Fourier& fourier) {
  const Fourier* inner = fourier.inner();
  const std::string name = w.variable("plan");
  w.text().line("static const {} {} = {{{}, {}, {}, {}, {}}};", plan_type(w.functions()), name, fourier.length(),
                inner ? inner->length() : 0, table(w, "roots", (inner ? *inner : fourier).roots()),
                table(w, "chirp", fourier.chirp()), table(w, "filter", fourier.filter()));
  return name;
}

// Room for a line and the work of its transform.
std::string line_room(Writer& w, const Fourier& fourier) {
  const size_t numbers = fourier.length() + fourier.work_size();
  return fmt::format("(double *)(void *){}", w.scratch(numbers * sizeof(Fourier::Complex)));
}

constexpr int64_t kMostLength = int64_t{1} << 20;  // of tables

std::optional<int64_t> integer(const Call& call, size_t i) {
  const Tensor* constant = call.constant(i);
  if (!constant || constant->element_count() != 1) return std::nullopt;
  return constant->int64_at(0);
}

void write_dft(const Call& call, std::string& why) {
  Writer& w = call.writer;
  Text& text = w.text();
  const auto& attributes = call.node.attributes;
  Dims x = call.dims(0), y = call.result_dims();
  const bool inverse = attributes.get_int("inverse", 0) != 0, onesided = attributes.get_int("onesided", 0) != 0;
  const auto rank = static_cast<int64_t>(x.size());
  std::optional<int64_t> axis = call.node.version->since < 20 ? attributes.get_int("axis", 1) : -2;
  if (call.node.version->since >= 20 && call.has_input(2)) axis = integer(call, 2);
  std::optional<int64_t> length;
  if (call.has_input(1)) length = integer(call, 1);
  if (!axis || (call.has_input(1) && !length)) {
    why = "its axis or length is known only when it runs";
    return;
  }
  const auto at = static_cast<size_t>(*axis < 0 ? *axis + rank : *axis);
  if (!length) length = inverse && onesided ? y[at] : x[at];
  if (product(y, 0, y.size()) == 0) return;
  if (*length > kMostLength) {
    why = "its tables are too long";
    return;
  }
  const Fourier fourier(static_cast<size_t>(*length));
  const Line line{call.type(0), x.back(), y.back(), false};
  const int64_t parts_in = x.back(), parts_out = y.back();
  x.pop_back(), y.pop_back();
  const int64_t outer = product(x, 0, at), inner = product(x, at + 1, x.size());
  text.open("");
  const std::string plan = declare_plan(w, fourier);
  text.open("for (ptrdiff_t o = 0; o < {}; ++o)", outer);
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", inner);
  text.line("{}({} + (o * {} + i) * {}, {}, {}, {}, {}, &{}, {}, {} + (o * {} + i) * {}, {}, {});",
            line_function(w, line), call.in(0), x[at] * inner, parts_in, x[at], inner, inverse ? 1 : 0,
            inverse && onesided ? 1 : 0, plan, line_room(w, fourier), call.out(), y[at] * inner, parts_out, y[at],
            inner);
  text.close();
  text.close();
  text.close();
}

void write_stft(const Call& call, std::string& why) {
  enum Input : size_t { kSignal, kStep, kWindow, kFrame };
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims x = call.dims(kSignal), y = call.result_dims();
  const std::optional<int64_t> step = integer(call, kStep);
  std::optional<int64_t> length;
  if (call.has_input(kWindow)) {
    length = call.dims(kWindow)[0];
  } else {
    length = integer(call, kFrame);
  }
  if (!step || !length) {
    why = "its step or the length of its frames is known only when it runs";
    return;
  }
  if (product(y, 0, y.size()) == 0) return;
  if (*length > kMostLength) {
    why = "its tables are too long";
    return;
  }
  const Fourier fourier(static_cast<size_t>(*length));
  const Line line{call.type(kSignal), x.size() == 2 ? 1 : x[2], 2, call.has_input(kWindow)};
  text.open("");
  const std::string plan = declare_plan(w, fourier);
  text.open("for (ptrdiff_t b = 0; b < {}; ++b)", y[0]);
  text.open("for (ptrdiff_t k = 0; k < {}; ++k)", y[1]);
  text.line("{}({} + (b * {} + k * {}) * {}, {}, 1,{} 0, 0, &{}, {}, {} + (b * {} + k) * {}, {}, 1);",
            line_function(w, line), call.in(kSignal), x[1], *step, line.parts_in, *length,
            line.windowed ? fmt::format(" {},", call.in(kWindow)) : "", plan, line_room(w, fourier), call.out(), y[1],
            2 * y[2], y[2]);
  text.close();
  text.close();
  text.close();
}

constexpr OperatorRow kRows[] = {{"DFT", "", write_dft}, {"STFT", "", write_stft}};

}  // namespace

std::span<const OperatorRow> signal_operators() {
  return kRows;
}

}  // namespace treadle::c
