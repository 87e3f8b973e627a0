// Resize and Upsample (ops/image/resize.h), whose taps are tables; MaxUnpool, Col2Im (ops/image/windows.cc).

#include <algorithm>
#include <cmath>

#include "c/writer.h"
#include "kernels/convert.h"
#include "op/op_def.h"
#include "ops/image/resize.h"

namespace treadle::c {

namespace {

using image_ops::AxisTaps;

std::string numbers(Writer& w, const char* name, const std::vector<int64_t>& list) {
  const std::vector<int32_t> narrow(list.begin(), list.end());
  return w.table(name, ElementType::kInt32, narrow.data(), narrow.size());
}

// A table that is 1 at the outputs that lie outside of the input; empty if none does.
std::string outside_table(Writer& w, const AxisTaps& axis) {
  if (axis.is_outside.empty()) return {};
  return w.table("outside", ElementType::kUint8, axis.is_outside.data(), axis.is_outside.size());
}

void write_nearest(const Call& call, const image_ops::ResizeOptions& options, const std::vector<AxisTaps>& axes) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims in = call.dims(0), out = call.result_dims();
  const ElementType type = call.type(0);
  std::string to, from, outside;
  for (size_t d = 0; d < axes.size(); ++d) {
    const int64_t out_step = product(out, d + 1, out.size()), in_step = product(in, d + 1, in.size());
    text.open("for (ptrdiff_t i{0} = 0; i{0} < {1}; ++i{0})", d, out[d]);
    to += fmt::format("{}i{} * {}", d > 0 ? " + " : "", d, out_step);
    const std::string index =
        axes[d].identity ? fmt::format("i{}", d) : fmt::format("{}[i{}]", numbers(w, "nearest", axes[d].indices), d);
    from += fmt::format("{}{} * {}", d > 0 ? " + " : "", index, in_step);
    if (const std::string table = outside_table(w, axes[d]); !table.empty()) {
      outside += fmt::format("{}{}[i{}]", outside.empty() ? "" : " || ", table, d);
    }
  }
  if (axes.empty()) to = from = "0";
  std::string value = fmt::format("{}[{}]", call.in(0), from);
  if (!outside.empty()) {
    uint64_t bits = 0;
    if (options.extrapolation != 0 && kernels::can_convert(ElementType::kFloat, type)) {
      kernels::cast(ElementType::kFloat, type, &options.extrapolation, &bits, 1);
    }
    value = fmt::format("{} ? {} : {}", outside, literal(type, &bits), value);
  }
  text.line("{}[{}] = {};", call.out(), to, value);
  for (size_t d = 0; d < axes.size(); ++d) text.close();
}

// f(x, outer, in, out, inner, taps, indices, weights, y): [outer, in, inner] to [outer, out, inner], each output the
// sum of weight * input over its taps, in order.
std::string pass_function(Functions& f, ElementType type) {
  const std::string_view t = stored(type);
  return f.get(fmt::format("resample_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open(
        "static void {0}(const {1} *restrict x, ptrdiff_t outer, ptrdiff_t in, ptrdiff_t out, ptrdiff_t inner, "
        "ptrdiff_t taps, const int32_t *indices, const {1} *weights, {1} *restrict y)",
        name, t);
    text.open("for (ptrdiff_t o = 0; o < outer; ++o, x += in * inner)");
    text.open("for (ptrdiff_t i = 0; i < out; ++i, y += inner)");
    text.open("for (ptrdiff_t k = 0; k < taps; ++k)");
    text.line("const {} *from = x + indices[i * taps + k] * inner, weight = weights[i * taps + k];", t);
    text.open("for (ptrdiff_t j = 0; j < inner; ++j)");
    text.line("const {} product = weight * from[j];", t);
    text.line("y[j] = k == 0 ? product : y[j] + product;");
    text.close();
    text.close();
    text.close();
    text.close();
    text.close();
  });
}

// What an integer type holds of a float: rounded to nearest and cut off, as ops/image/resize_interpolation.cc does.
std::string narrowed(Writer& w, ElementType compute, ElementType type, const std::string& x) {
  if (!is_integer(type)) return w.converted(compute, type, x);
  std::string value = fmt::format("{}({})", w.functions().round_even(compute), x);
  const int bits = static_cast<int>(byte_width(type)) * 8;
  if (bits <= 32) {
    const double low = is_signed_integer(type) ? -std::ldexp(1.0, bits - 1) : 0;
    const double high = std::ldexp(1.0, is_signed_integer(type) ? bits - 1 : bits) - 1;
    const auto number = [&](double v) {
      return compute == ElementType::kDouble ? literal(v) : literal(static_cast<float>(v));
    };
    const std::string clamp =
        w.functions().get(fmt::format("clamp_{}", suffix(compute)), [&](Text& text, const std::string& name) {
          text.open("static inline {0} {1}({0} x, {0} low, {0} high)", stored(compute), name);
          text.line("return x < low ? low : x > high ? high : x;");
          text.close();
        });
    value = fmt::format("{}({}, {}, {})", clamp, value, number(low), number(high));
  }
  return w.converted(compute, type, value);
}

void write_interpolation(const Call& call, const image_ops::ResizeOptions& options, const std::vector<AxisTaps>& axes) {
  Writer& w = call.writer;
  Text& text = w.text();
  const ElementType type = call.type(0);
  const bool single = is_float(wide_type(type)) ? wide_type(type) == ElementType::kFloat : byte_width(type) <= 2;
  const ElementType compute = single ? ElementType::kFloat : ElementType::kDouble;
  const std::string_view c = stored(compute);
  Dims dims = call.dims(0);
  const Dims out = call.result_dims();
  const int64_t inputs = product(dims, 0, dims.size()), outputs = product(out, 0, out.size());
  text.open("");
  const std::vector<size_t> order = image_ops::cheapest_order(axes);
  const auto room = [&](int64_t count) {
    return fmt::format("(({} *)(void *){})", c, w.scratch(static_cast<size_t>(count) * byte_width(compute)));
  };
  std::string from = call.in(0);
  if (type != compute) {
    const std::string wide = w.variable("wide");
    text.line("{} *const {} = {};", c, wide, room(inputs));
    text.line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {};", inputs, wide, w.converted(type, compute, from + "[i]"));
    from = wide;
  }
  for (size_t k = 0; k < order.size(); ++k) {
    const size_t d = order[k];
    const AxisTaps& axis = axes[d];
    const int64_t outer = product(dims, 0, d), inner = product(dims, d + 1, dims.size());
    dims[d] = axis.out;
    std::string to = call.out();
    if (k + 1 < order.size() || type != compute) {
      to = w.variable("resized");
      text.line("{} *const {} = {};", c, to, room(product(dims, 0, dims.size())));
    }
    std::string weights;
    if (compute == ElementType::kFloat) {
      const std::vector<float> narrow(axis.weights.begin(), axis.weights.end());
      weights = w.table("weights", compute, narrow.data(), narrow.size());
    } else {
      weights = w.table("weights", compute, axis.weights.data(), axis.weights.size());
    }
    text.line("{}({}, {}, {}, {}, {}, {}, {}, {}, {});", pass_function(w.functions(), compute), from, outer, axis.in,
              axis.out, inner, axis.taps, numbers(w, "indices", axis.indices), weights, to);
    from = to;
  }
  std::string outside;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (const std::string table = outside_table(w, axes[d]); !table.empty()) {
      outside += fmt::format("{}{}[i / {} % {}]", outside.empty() ? "" : " || ", table, product(out, d + 1, out.size()),
                             out[d]);
    }
  }
  if (from != call.out() || !outside.empty()) {
    std::string value = from + "[i]";
    if (!outside.empty()) {
      const std::string other = compute == ElementType::kFloat ? literal(options.extrapolation)
                                                               : literal(static_cast<double>(options.extrapolation));
      value = fmt::format("({} ? {} : {})", outside, other, value);
    }
    text.line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {};", outputs, call.out(), narrowed(w, compute, type, value));
  }
  text.close();
}

void write_resize(const Call& call, std::string& why) {
  const auto options = image_ops::resize_options(call.node);
  const Dims in = call.dims(0), out = call.result_dims();
  if (product(out, 0, out.size()) == 0) return;
  for (size_t i = 1; i < call.inputs(); ++i) {
    if (call.has_input(i) && product(call.dims(i), 0, call.dims(i).size()) > 0 && !call.constant(i)) {
      why = "its scales or sizes are known only when it runs";
      return;
    }
  }
  const auto constant = [&](size_t i) {
    const Tensor* tensor = call.constant(i);
    return tensor && tensor->element_count() > 0 ? *tensor : Tensor();
  };
  const auto axes = image_ops::resize_taps(call.node, *options, in, out, constant);
  if (!axes.ok()) {
    why = "its scales or sizes do not fit";
    return;
  }
  if (options->mode == image_ops::ResizeMode::kNearest) return write_nearest(call, *options, *axes);
  if (call.type(0) == ElementType::kBool) {
    why = "booleans are interpolated";
    return;
  }
  write_interpolation(call, *options, *axes);
}

constexpr OperatorRow kRows[] = {
    {"Resize", "", write_resize},
    {"Upsample", "", write_resize},
};

}  // namespace

std::span<const OperatorRow> resample_operators() {
  return kRows;
}

}  // namespace treadle::c
