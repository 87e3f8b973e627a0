// MaxPool, AveragePool, LpPool and their global forms (ops/nn/pool.cc), in the order of sums of kernels/isa/pool.cc.

#include "kernels/pool.h"

#include <algorithm>
#include <limits>

#include "c/writer.h"
#include "op/op_def.h"
#include "ops/nn/window.h"

namespace treadle::c {

namespace {

using kernels::ElementwiseOp;
using kernels::PoolKind;
using kernels::PoolShape;

constexpr size_t kAxes = 3;  // of windows in C; those that a pool lacks have one element

// One axis of a pool. `low` and `high` bound the elements that averages count.
std::string axis_type(Functions& f) {
  return f.get("pool_axis", [](Text& text, const std::string& name) {
    text.line("/* Tap t of a window reads element o * stride + t * dilation - pad at output o. Averages count the");
    text.line("   elements from `low` to `high`. */");
    text.line("typedef struct {{ ptrdiff_t in, out, kernel, stride, dilation, pad, low, high; }} {};", name);
  });
}

// f(axis, o): how many elements the window at output o counts.
std::string count_function(Functions& f) {
  const std::string axis = axis_type(f);
  return f.get("counted_taps", [&](Text& text, const std::string& name) {
    text.open("static ptrdiff_t {}(const {} *a, ptrdiff_t o)", name, axis);
    text.line("ptrdiff_t count = 0;");
    text.open("for (ptrdiff_t t = 0; t < a->kernel; ++t)");
    text.line("const ptrdiff_t at = o * a->stride + t * a->dilation - a->pad;");
    text.line("count += at >= a->low && at < a->high;");
    text.close();
    text.line("return count;");
    text.close();
  });
}

// The pool's lowest value: -infinity for floats.
std::string lowest(ElementType type) {
  if (type == ElementType::kFloat) return "(float)(-1.0 / 0.0)";
  if (type == ElementType::kDouble) return "(-1.0 / 0.0)";
  return type == ElementType::kInt8 ? "INT8_MIN" : "0";
}

// The outputs [begin, end) along the last axis whose tap `k2` reads the input.
void write_reach(Text& text) {
  text.line("const ptrdiff_t at2 = k2 * across.dilation - across.pad;");
  text.line("ptrdiff_t begin = at2 >= 0 ? 0 : (across.stride - 1 - at2) / across.stride;");
  text.line("ptrdiff_t end = at2 >= across.in ? 0 : (across.in - 1 - at2) / across.stride + 1;");
  text.line("if (end > across.out) end = across.out;");
  text.line("if (begin > end) begin = end;");
}
// Loops over taps of the other axes that read the input.
void open_outer_taps(Text& text) {
  for (int d = 0; d < 2; ++d) {
    text.open("for (ptrdiff_t k{0} = 0; k{0} < axes[{0}].kernel; ++k{0})", d);
    text.line("const ptrdiff_t at{0} = o{0} * axes[{0}].stride + k{0} * axes[{0}].dilation - axes[{0}].pad;", d);
    text.line("if (at{0} < 0 || at{0} >= axes[{0}].in) continue;", d);
  }
}
void close_outer_taps(Text& text) {
  text.close();
  text.close();
}
void open_rows(Text& text) {
  text.open("for (ptrdiff_t o0 = 0; o0 < axes[0].out; ++o0)");
  text.open("for (ptrdiff_t o1 = 0; o1 < axes[1].out; ++o1, y += across.out)");
}
void close_rows(Text& text) {
  text.close();
  text.close();
}

// What the element `a` makes of the result so far, `best`.
std::string taken(Functions& f, PoolKind kind, int p, ElementType type, bool by_columns) {
  switch (kind) {
    case PoolKind::kMax:
      // Where elements are equal (0 and -0), the last one counts by columns, else the first one.
      if (!is_float(type)) return "a > best ? a : best";
      return by_columns ? "best > a || best != best ? best : a" : "a > best || a != a ? a : best";
    case PoolKind::kLp:
      if (p == 2) return "best + a * a";
      if (p == 1) return fmt::format("best + {}(a)", f.operation(ElementwiseOp::kAbs, type));
      return fmt::format("best + {}(a, {})", f.power_of_size(type), p);
    default:
      return "best + a";
  }
}

std::string name_of(PoolKind kind, int p) {
  if (kind == PoolKind::kMax) return "max";
  if (kind == PoolKind::kLp) return p == 1 ? "sum_abs" : p == 2 ? "sum_squares" : fmt::format("sum_powers_{}", p);
  return "average";
}

// What the root of a sum of powers is written as; empty if it is the sum.
std::string root_of(Functions& f, PoolKind kind, int p, ElementType type, const std::string& sum) {
  if (kind != PoolKind::kLp || p == 1) return {};
  if (p == 2) return fmt::format("{}({})", f.sqrt(type), sum);
  const std::string exponent = type == ElementType::kDouble ? literal(1.0 / p) : literal(1.0F / static_cast<float>(p));
  return fmt::format("{}({}, {})", f.power_of_size(type), sum, exponent);
}

// f(x, axes, room, y): pools a plane. `room`: of an average, a row of results for divisors and one for columns.
std::string plane_function(Functions& f, PoolKind kind, int p, ElementType type, bool by_columns) {
  const std::string axis = axis_type(f);
  const std::string_view t = stored(type);
  const bool average = kind == PoolKind::kAverage || kind == PoolKind::kAverageWithPads;
  const std::string count = average ? count_function(f) : "";
  const std::string take = taken(f, kind, p, type, by_columns);
  const std::string root = root_of(f, kind, p, type, "y[o]");
  const std::string name = fmt::format("{}_pool_{}{}", name_of(kind, p), by_columns ? "columns_" : "", suffix(type));
  return f.get(name, [&](Text& text, const std::string& full) {
    text.open("static void {0}(const {1} *restrict x, const {2} *axes, {1} *restrict room, {1} *restrict y)", full, t,
              axis);
    text.line("const {} across = axes[2];", axis);
    const std::string start = kind == PoolKind::kMax ? lowest(type) : "0";
    if (average) {
      text.line("{0} *divisors = room, *column = room + across.out;", t);
      text.open("for (ptrdiff_t o = 0; o < across.out; ++o)");
      text.line("const ptrdiff_t counted = {}(&across, o);", count);
      text.line("divisors[o] = counted > 1 ? ({})counted : 1;", t);
      text.close();
      if (!by_columns) text.line("(void)column;");
    } else {
      text.line("(void)room;");
    }
    open_rows(text);
    text.line("for (ptrdiff_t o = 0; o < across.out; ++o) y[o] = {};", start);
    const auto add = [&](const char* to) {
      text.line("const {} *row = x + (at0 * axes[1].in + at1) * across.in;", t);
      text.line("{} *sums = {};", t, to);
      text.open("for (ptrdiff_t o = begin; o < end; ++o)");
      text.line("const {} a = row[o * across.stride + at2], best = sums[o];", t);
      text.line("sums[o] = {};", take);
      text.close();
    };
    if (by_columns && average) {
      text.line("/* the sum of each column of a window, then that of the columns */");
      text.open("for (ptrdiff_t k2 = 0; k2 < across.kernel; ++k2)");
      write_reach(text);
      text.line("for (ptrdiff_t o = begin; o < end; ++o) column[o] = 0;");
      open_outer_taps(text);
      add("column");
      close_outer_taps(text);
      text.line("for (ptrdiff_t o = begin; o < end; ++o) y[o] += column[o];");
      text.close();
    } else if (by_columns) {
      text.open("for (ptrdiff_t k2 = 0; k2 < across.kernel; ++k2)");
      write_reach(text);
      open_outer_taps(text);
      add("y");
      close_outer_taps(text);
      text.close();
    } else {
      open_outer_taps(text);
      text.open("for (ptrdiff_t k2 = 0; k2 < across.kernel; ++k2)");
      write_reach(text);
      add("y");
      text.close();
      close_outer_taps(text);
    }
    if (average) {
      text.line("const ptrdiff_t counted = {0}(&axes[0], o0) * {0}(&axes[1], o1);", count);
      text.line("const {} others = counted > 1 ? ({})counted : 1;", t, t);
      text.line("for (ptrdiff_t o = 0; o < across.out; ++o) y[o] = y[o] / (others * divisors[o]);");
    } else if (!root.empty()) {
      text.line("for (ptrdiff_t o = 0; o < across.out; ++o) y[o] = {};", root);
    }
    close_rows(text);
    text.close();
  });
}

// f(x, axes, base, column_major, y, indices): the largest element of each window and where it is.
std::string index_function(Functions& f, ElementType type) {
  const std::string axis = axis_type(f);
  const std::string_view t = stored(type);
  return f.get(fmt::format("max_pool_indices_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open(
        "static void {0}(const {1} *restrict x, const {2} *axes, int64_t base, int column_major, {1} *restrict y, "
        "int64_t *restrict indices)",
        name, t, axis);
    text.line("const {} across = axes[2];", axis);
    text.open("for (ptrdiff_t o0 = 0; o0 < axes[0].out; ++o0)");
    text.open("for (ptrdiff_t o1 = 0; o1 < axes[1].out; ++o1, y += across.out, indices += across.out)");
    text.line("for (ptrdiff_t o = 0; o < across.out; ++o) y[o] = {}, indices[o] = -1;", lowest(type));
    open_outer_taps(text);
    text.open("for (ptrdiff_t k2 = 0; k2 < across.kernel; ++k2)");
    write_reach(text);
    text.open("for (ptrdiff_t o = begin; o < end; ++o)");
    text.line("const ptrdiff_t at = (at0 * axes[1].in + at1) * across.in + o * across.stride + at2;");
    text.line("const {} value = x[at], best = y[o];", t);
    const std::string nan = is_float(type) ? " || (value != value && best == best)" : "";
    text.line("if (indices[o] < 0 || value > best{}) y[o] = value, indices[o] = at;", nan);
    text.close();
    text.close();
    close_outer_taps(text);
    text.open("for (ptrdiff_t o = 0; o < across.out; ++o)");
    text.line("int64_t at = indices[o];");
    text.line("if (at < 0) continue;");
    text.open("if (column_major)");
    text.line(
        "const int64_t at2 = at % across.in, at1 = at / across.in % axes[1].in, at0 = at / across.in / axes[1].in;");
    text.line("at = (at2 * axes[1].in + at1) * axes[0].in + at0;");
    text.close();
    text.line("indices[o] = base + at;");
    text.close();
    text.close();
    text.close();
    text.close();
  });
}

// f(x, axes, channels, room, y): [positions, channels]; windows by columns.
std::string last_function(Functions& f, PoolKind kind) {
  const std::string axis = axis_type(f);
  const bool average = kind != PoolKind::kMax;
  const std::string count = average ? count_function(f) : "";
  return f.get(average ? "average_pool_last" : "max_pool_last", [&](Text& text, const std::string& name) {
    text.line("/* Channels are last. The columns of a window, each from top to bottom. */");
    text.open(
        "static void {}(const float *restrict x, const {} *axes, ptrdiff_t channels, float *restrict column, "
        "float *restrict y)",
        name, axis);
    text.line("const {} down = axes[1], across = axes[2];", axis);
    if (!average) text.line("(void)column;");
    text.open("for (ptrdiff_t o1 = 0; o1 < down.out; ++o1)");
    text.open("for (ptrdiff_t o2 = 0; o2 < across.out; ++o2, y += channels)");
    text.line("for (ptrdiff_t c = 0; c < channels; ++c) y[c] = {};", average ? "0" : lowest(ElementType::kFloat));
    text.open("for (ptrdiff_t k2 = 0; k2 < across.kernel; ++k2)");
    text.line("const ptrdiff_t at2 = o2 * across.stride + k2 * across.dilation - across.pad;");
    text.line("if (at2 < 0 || at2 >= across.in) continue;");
    if (average) text.line("for (ptrdiff_t c = 0; c < channels; ++c) column[c] = 0;");
    text.open("for (ptrdiff_t k1 = 0; k1 < down.kernel; ++k1)");
    text.line("const ptrdiff_t at1 = o1 * down.stride + k1 * down.dilation - down.pad;");
    text.line("if (at1 < 0 || at1 >= down.in) continue;");
    text.line("const float *from = x + (at1 * across.in + at2) * channels;");
    if (average) {
      text.line("for (ptrdiff_t c = 0; c < channels; ++c) column[c] += from[c];");
    } else {
      text.line("for (ptrdiff_t c = 0; c < channels; ++c) y[c] = y[c] > from[c] || y[c] != y[c] ? y[c] : from[c];");
    }
    text.close();
    if (average) text.line("for (ptrdiff_t c = 0; c < channels; ++c) y[c] += column[c];");
    text.close();
    if (average) {
      text.line("const ptrdiff_t counted = {0}(&down, o1) * {0}(&across, o2);", count);
      text.line("const float divisor = counted > 1 ? (float)counted : 1;");
      text.line("for (ptrdiff_t c = 0; c < channels; ++c) y[c] = y[c] / divisor;");
    }
    text.close();
    text.close();
    text.close();
  });
}

// Whether kernels/isa/pool_rows.h computes the pool, with vectors of so many lanes.
bool is_by_columns(const PoolShape& whole, int lanes) {
  constexpr int64_t kMostRows = 64, kMostElements = 4096;
  const PoolShape s = kernels::narrowed(whole);
  int64_t rows = 1;
  for (int d = 0; d + 1 < s.axes; ++d) rows *= s.kernel[static_cast<size_t>(d)];
  const auto w = static_cast<size_t>(s.axes - 1);
  const int64_t filled = (s.output[w] + lanes - 1) / lanes * lanes, more = s.stride[w] > 2 ? lanes : 0;
  const int64_t elements =
      std::max((filled - 1) * s.stride[w] + (s.kernel[w] - 1) * s.dilation[w] + 1 + more, s.pad_begin[w] + lanes);
  return s.pad_begin[w] >= 0 && rows <= kMostRows && elements <= kMostElements;
}

// The type in which a pool computes.
ElementType pool_type(ElementType type) {
  return is_float(type) ? wide_type(type) : type;
}

// x and y in the type that the pool computes in: their own memory, or scratch.
struct Operands {
  Writer& w;
  const Call& call;
  ElementType type;
  int64_t inputs, outputs;  // elements
  std::string x, y;

  Operands(const Call& c, int64_t in, int64_t out)
      : w(c.writer), call(c), type(pool_type(c.type(0))), inputs(in), outputs(out), x(c.in(0)), y(c.out()) {
    w.text().open("");
    if (call.type(0) == type) return;
    y = w.variable("wide_y");
    const std::string wide = w.variable("wide_x");
    for (const auto& [name, count] : {std::pair(wide, inputs), std::pair(y, outputs)}) {
      w.text().line("{0} *const {1} = ({0} *)(void *){2};", stored(type), name,
                    w.scratch(static_cast<size_t>(count) * byte_width(type)));
    }
    w.text().line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {};", inputs, wide,
                  w.converted(call.type(0), type, x + "[i]"));
    x = wide;
  }
  void finish() const {
    if (call.type(0) != type) {
      w.text().line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {};", outputs, call.out(),
                    w.converted(type, call.result(), y + "[i]"));
    }
    w.text().close();
  }
};

int64_t count_of(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t size : dims) count *= size;
  return count;
}

// Declares the table of axes.
std::string axes_table(Writer& w, const PoolShape& whole, PoolKind kind) {
  const PoolShape s =
      kind == PoolKind::kAverage || kind == PoolKind::kAverageWithPads ? whole : kernels::narrowed(whole);
  std::string list;
  for (size_t d = 0; d < kAxes; ++d) {
    const auto missing = static_cast<int64_t>(kAxes) - s.axes;
    list += d > 0 ? ", " : "";
    if (static_cast<int64_t>(d) < missing) {
      list += "{1, 1, 1, 1, 1, 0, 0, 1}";
      continue;
    }
    const size_t i = d - static_cast<size_t>(missing);
    const bool pads = kind == PoolKind::kAverageWithPads;
    list += fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}}}", s.input[i], s.output[i], s.kernel[i], s.stride[i],
                        s.dilation[i], s.pad_begin[i], pads ? -s.pad_begin[i] : 0,
                        pads ? s.input[i] + s.pad_end[i] : s.input[i]);
  }
  const std::string name = w.variable("axes");
  w.text().line("static const {} {}[{}] = {{{}}};", axis_type(w.functions()), name, kAxes, list);
  return name;
}

int power_of(const Call& call) {
  const ir::Attribute* p = call.node.attributes.find("p");
  if (!p) return 2;
  return p->kind == ir::AttributeKind::kFloat ? static_cast<int>(p->as_float()) : static_cast<int>(p->as_int());
}

bool needs_library(const Call& call, int p) {
  return p != 1 && p != 2 && call.writer.functions().power_of_size(pool_type(call.type(0))).empty();
}

void write_pool(const Call& call, PoolKind kind, std::string& why) {
  Writer& w = call.writer;
  Functions& f = w.functions();
  const auto shape = nn::pool_shape(call.node.attributes, call.dims(0), call.result_dims());
  if (!shape.ok() || shape->axes > static_cast<int>(kAxes)) {
    why = "its windows have more than three axes";
    return;
  }
  const int p = kind == PoolKind::kLp ? power_of(call) : 2;
  if (needs_library(call, p)) {
    why = "powers of its elements are the C library's (libm allows it)";
    return;
  }
  const int64_t in = count_of(call.dims(0)), out = count_of(call.result_dims());
  if (out == 0) return;
  const int64_t planes = shape->batch * shape->channels, in_plane = in / planes, out_plane = out / planes;
  const Operands operands(call, in, out);
  const ElementType type = operands.type;
  const std::string axes = axes_table(w, *shape, kind);
  const bool has_indices = call.has_output(1);
  const bool by_columns =
      is_float(type) && kind != PoolKind::kLp && !has_indices && is_by_columns(*shape, f.lanes(type));
  const bool average = kind == PoolKind::kAverage || kind == PoolKind::kAverageWithPads;
  const auto last = static_cast<size_t>(shape->axes - 1);
  std::string room = "NULL";
  if (average) {
    room = fmt::format("({} *)(void *){}", stored(type),
                       w.scratch(2 * static_cast<size_t>(shape->output[last]) * byte_width(type)));
  }
  w.text().open("for (ptrdiff_t p = 0; p < {}; ++p)", planes);
  if (has_indices) {
    w.text().line("{}({} + p * {}, {}, p * {}, {}, {} + p * {}, {} + p * {});", index_function(f, type), operands.x,
                  in_plane, axes, in_plane, shape->column_major_indices ? 1 : 0, operands.y, out_plane, call.out(1),
                  out_plane);
  } else {
    w.text().line("{}({} + p * {}, {}, {}, {} + p * {});", plane_function(f, kind, p, type, by_columns), operands.x,
                  in_plane, axes, room, operands.y, out_plane);
  }
  w.text().close();
  operands.finish();
}

PoolKind average_kind(const Call& call) {
  return call.node.attributes.get_int("count_include_pad", 0) != 0 ? PoolKind::kAverageWithPads : PoolKind::kAverage;
}

void write_max_pool(const Call& call, std::string& why) {
  write_pool(call, PoolKind::kMax, why);
}
void write_average_pool(const Call& call, std::string& why) {
  write_pool(call, average_kind(call), why);
}
void write_lp_pool(const Call& call, std::string& why) {
  write_pool(call, PoolKind::kLp, why);
}

void write_pool_last(const Call& call, std::string& why) {
  Writer& w = call.writer;
  const auto shape =
      nn::pool_shape(call.node.attributes, nn::channels_second(call.dims(0)), nn::channels_second(call.result_dims()));
  if (!shape.ok() || shape->axes > 2) {
    why = "its windows have more than two axes";
    return;
  }
  const bool average = call.node.attributes.get_int("average", 0) != 0;
  const PoolKind kind = average ? average_kind(call) : PoolKind::kMax;
  const int64_t out = count_of(call.result_dims());
  if (out == 0) return;
  w.text().open("");
  const std::string axes = axes_table(w, *shape, kind);
  const std::string room =
      average ? "(float *)(void *)" + w.scratch(static_cast<size_t>(shape->channels) * sizeof(float)) : "NULL";
  w.text().open("for (ptrdiff_t n = 0; n < {}; ++n)", shape->batch);
  w.text().line("{}({} + n * {}, {}, {}, {}, {} + n * {});", last_function(w.functions(), kind), call.in(0),
                count_of(call.dims(0)) / shape->batch, axes, shape->channels, room, call.out(), out / shape->batch);
  w.text().close();
  w.text().close();
}

// f(x, n, step): pools n elements, `step` apart, in as many chains as four vectors have lanes.
std::string whole_function(Functions& f, PoolKind kind, int p, ElementType type) {
  const std::string_view t = stored(type);
  const int width = 4 * f.lanes(type);
  const bool max = kind == PoolKind::kMax;
  std::string term = "value";
  if (kind == PoolKind::kLp) {
    term = p == 1   ? fmt::format("{}(value)", f.operation(ElementwiseOp::kAbs, type))
           : p == 2 ? "value * value"
                    : fmt::format("{}(value, {})", f.power_of_size(type), p);
  }
  const std::string root = root_of(f, kind, p, type, "s[0]");
  return f.get(fmt::format("global_{}_{}", name_of(kind, p), suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static {0} {1}(const {0} *x, ptrdiff_t n, ptrdiff_t step)", t, name);
    text.line("{} s[{}];", t, width);
    text.line("for (int l = 0; l < {}; ++l) s[l] = {};", width, max ? lowest(type) : "0");
    text.open("for (ptrdiff_t i = 0; i < n; i += {})", width);
    text.line("const int count = n - i < {0} ? (int)(n - i) : {0};", width);
    text.open("for (int l = 0; l < count; ++l)");
    text.line("const {} value = x[(i + l) * step];", t);
    if (max) {
      text.line("if (value != value) return value;");
      text.line("s[l] = value > s[l] ? value : s[l];");
    } else {
      text.line("s[l] += {};", term);
    }
    text.close();
    text.close();
    text.open("for (int width = {}; width > 0; width /= 2)", width / 2);
    text.line("for (int l = 0; l < width; ++l) {};",
              max ? "s[l] = s[l + width] > s[l] ? s[l + width] : s[l]" : "s[l] += s[l + width]");
    text.close();
    if (kind == PoolKind::kAverage) {
      text.line("return s[0] / ({})n;", t);
    } else {
      text.line("return {};", root.empty() ? "s[0]" : root);
    }
    text.close();
  });
}

template <PoolKind kKind>
void write_global(const Call& call, std::string& why) {
  const int p = kKind == PoolKind::kLp ? power_of(call) : 2;
  if (needs_library(call, p)) {
    why = "powers of its elements are the C library's (libm allows it)";
    return;
  }
  const int64_t in = count_of(call.dims(0)), out = count_of(call.result_dims());
  if (out == 0) return;
  const Operands operands(call, in, out);
  const int64_t plane = in / out;
  call.writer.text().line("for (ptrdiff_t p = 0; p < {}; ++p) {}[p] = {}({} + p * {}, {}, 1);", out, operands.y,
                          whole_function(call.writer.functions(), kKind, p, operands.type), operands.x, plane, plane);
  operands.finish();
}

void write_global_last(const Call& call, std::string&) {
  const Dims x = call.dims(0);
  const int64_t in = count_of(x), channels = x.back(), images = x[0];
  if (images * channels == 0) return;
  const int64_t plane = in / (images * channels);
  Text& text = call.writer.text();
  text.line("for (ptrdiff_t n = 0; n < {}; ++n)", images);
  text.line("  for (ptrdiff_t c = 0; c < {}; ++c)", channels);
  text.line("    {}[n * {} + c] = {}({} + n * {} + c, {}, {});", call.out(), channels,
            whole_function(call.writer.functions(), PoolKind::kAverage, 2, ElementType::kFloat), call.in(0),
            plane * channels, plane, channels);
}

constexpr OperatorRow kRows[] = {
    {"MaxPool", "", write_max_pool},
    {"AveragePool", "", write_average_pool},
    {"LpPool", "", write_lp_pool},
    {"PoolNhwc", "treadle", write_pool_last},
    {"GlobalMaxPool", "", write_global<PoolKind::kMax>},
    {"GlobalAveragePool", "", write_global<PoolKind::kAverage>},
    {"GlobalLpPool", "", write_global<PoolKind::kLp>},
    {"GlobalAverageNhwc", "treadle", write_global_last},
};

}  // namespace

std::span<const OperatorRow> pool_operators() {
  return kRows;
}

}  // namespace treadle::c
