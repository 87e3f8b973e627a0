// Softmax, LogSoftmax, Hardmax (kernels/normalize.cc).

#include <algorithm>

#include "c/sums.h"
#include "c/writer.h"
#include "op/op_def.h"

namespace treadle::c {

namespace {

using kernels::ElementwiseOp;
using kernels::ReduceOp;

// The operand as [outer, n, inner].
struct View {
  int64_t outer = 1, n = 1, inner = 1;
};
View view_of(const Call& call) {
  const Dims dims = call.dims(0);
  const bool flattens = call.node.version->since < 13;
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = call.node.attributes.get_int("axis", flattens ? 1 : -1);
  if (axis < 0) axis += rank;
  View view;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t size = dims[static_cast<size_t>(d)];
    (d < axis ? view.outer : d == axis || flattens ? view.n : view.inner) *= size;
  }
  return view;
}

// f(x, y, exps, n[, stride]): one row or column. `x` and `y` point to its first elements, which are `stride` apart;
// `exps` is room for n elements. `log`: the function of logarithms, for LogSoftmax.
std::string softmax_of(Functions& f, ElementType type, bool rows, const std::string& log) {
  const ElementType compute = wide_type(type);
  const std::string_view t = stored(type), c = stored(compute);
  const bool logs = !log.empty();
  const std::string exp = f.operation(ElementwiseOp::kExp, compute);
  const std::string name =
      fmt::format("{}_{}_{}", logs ? "log_softmax" : "softmax", rows ? "row" : "column", suffix(type));
  const std::string max_row = rows ? row_function(f, ReduceOp::kMax, type) : "";
  const std::string sum_row = rows ? row_function(f, ReduceOp::kSum, compute) : "";
  const std::string max = f.operation(ElementwiseOp::kMax, compute);
  return f.get(name, [&](Text& text, const std::string& full) {
    const std::string stride = rows ? "" : " * stride";
    const auto load = [&](const std::string& i) {
      return f.converted(type, compute, fmt::format("x[{}{}]", i, stride));
    };
    const auto store = [&](const std::string& value) { return f.converted(compute, type, value); };
    text.open("static void {}(const {} *x, {} *y, {} *exps, ptrdiff_t n{})", full, t, t, c,
              rows ? "" : ", ptrdiff_t stride");
    if (rows) {
      text.line("const {} shift = ({}){}(-1.0 / 0.0, x, n);", c, c, max_row);
      text.line("double sum = 0;");
      text.line("for (ptrdiff_t i = 0; i < n; ++i) exps[i] = {}({} - shift);", exp, load("i"));
      text.line("sum = {}(sum, exps, n);", sum_row);
    } else {
      text.line("{} shift = ({})(-1.0 / 0.0);", c, c);
      text.line("double sum = 0;");
      text.line("for (ptrdiff_t i = 0; i < n; ++i) shift = {}({}, shift);", max, load("i"));
      text.open("for (ptrdiff_t i = 0; i < n; ++i)");
      text.line("exps[i] = {}({} - shift);", exp, load("i"));
      text.line("sum += (double)exps[i];");
      text.close();
    }
    text.line("const {} last = ({})({});", c, c, logs ? fmt::format("{}(sum)", log) : "1 / sum");
    if (logs) {
      text.open("for (ptrdiff_t i = 0; i < n; ++i)");
      text.line("const {} shifted = {} - shift;", c, load("i"));
      text.line("y[i{}] = {};", stride, store("shifted - last"));
      text.close();
    } else {
      text.line("for (ptrdiff_t i = 0; i < n; ++i) y[i{}] = {};", stride, store("exps[i] * last"));
    }
    text.close();
  });
}

void write_softmax(const Call& call, std::string& why) {
  Writer& w = call.writer;
  const View view = view_of(call);
  const auto [outer, n, inner] = view;
  if (outer * n * inner == 0) return;
  const bool logs = call.node.op->name == "LogSoftmax";
  const ElementType type = call.type(0), compute = wide_type(type);
  Functions& f = w.functions();
  const std::string_view c = stored(compute);
  std::string log;
  if (logs) {
    log = f.logarithm();
    if (log.empty()) {
      why = "the logarithm of a sum is the C library's (libm allows it)";
      return;
    }
  }
  const bool rows = inner == 1, direct = type == compute;
  const std::string function = softmax_of(f, type, rows, log);
  const std::string x = call.in(0), y = call.out();
  // Exponentials of a row lie in the result, if they have its type.
  const bool in_place = direct && rows && !logs;
  std::string exps;
  if (!in_place) exps = fmt::format("({} *)(void *){}", c, w.scratch(static_cast<size_t>(n) * byte_width(compute)));
  Text& text = w.text();
  if (outer > 1) text.open("for (ptrdiff_t o = 0; o < {}; ++o)", outer);
  const std::string base = outer > 1 ? fmt::format(" + o * {}", n * inner) : "";
  if (rows) {
    text.line("{0}({1}{2}, {3}{2}, {4}, {5});", function, x, base, y, in_place ? y + base : exps, n);
  } else {
    text.open("for (ptrdiff_t k = 0; k < {}; ++k)", inner);
    text.line("{0}({1}{2} + k, {3}{2} + k, {4}, {5}, {6});", function, x, base, y, exps, n, inner);
    text.close();
  }
  if (outer > 1) text.close();
}

void write_hardmax(const Call& call, std::string&) {
  Writer& w = call.writer;
  const auto [outer, n, inner] = view_of(call);
  if (outer * n * inner == 0) return;
  const ElementType type = call.type(0), compute = wide_type(type);
  const std::string x = call.in(0), y = call.out();
  Text& text = w.text();
  const auto load = [&](const char* i) {
    return w.converted(type, compute, fmt::format("{}[o * {} + {} * {} + k]", x, n * inner, i, inner));
  };
  text.open("for (ptrdiff_t o = 0; o < {}; ++o)", outer);
  text.open("for (ptrdiff_t k = 0; k < {}; ++k)", inner);
  text.line("{} best = {};", stored(compute), load("0"));
  text.line("ptrdiff_t found = 0;");
  text.open("for (ptrdiff_t i = 1; i < {}; ++i)", n);
  text.line("const {} a = {};", stored(compute), load("i"));
  text.line("if (best == best && (a != a || a > best)) best = a, found = i;");
  text.close();
  text.line("for (ptrdiff_t i = 0; i < {0}; ++i) {1}[o * {2} + i * {3} + k] = i == found ? {4} : 0;", n, y, n * inner,
            inner, w.converted(compute, type, "1"));
  text.close();
  text.close();
}

constexpr OperatorRow kRows[] = {
    {"Softmax", "", write_softmax}, {"LogSoftmax", "", write_softmax}, {"Hardmax", "", write_hardmax}};

}  // namespace

std::string softmax_function(Functions& functions, ElementType type) {
  return softmax_of(functions, type, true, {});
}

std::span<const OperatorRow> softmax_operators() {
  return kRows;
}

}  // namespace treadle::c
