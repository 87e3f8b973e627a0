// DeformConv (ops/nn/deform_conv.cc): columns of moved taps, then a product of matrices for each group.

#include <algorithm>

#include "c/sums.h"
#include "c/writer.h"
#include "kernels/gemm.h"
#include "op/op_def.h"
#include "ops/nn/window.h"

namespace treadle::c {

namespace {

enum Input : size_t { kData, kWeight, kOffset, kBias, kMask };

std::string axis_type(Functions& f) {
  return f.get("deform_axis", [](Text& text, const std::string& name) {
    text.line("typedef struct {{ ptrdiff_t in, out, kernel, stride, dilation, pad; }} {};", name);
  });
}

// f(x, offset, mask, axes, channels, taps, positions, pixels, columns): the columns [channels, taps, positions] that
// one group of offsets moves. `mask` may be null.
std::string columns_function(Functions& f, ElementType type, size_t axes) {
  const std::string axis = axis_type(f), floor = f.floor(type);
  const std::string_view t = stored(type);
  return f.get(fmt::format("deform_columns_{}_{}", axes, suffix(type)), [&](Text& text, const std::string& name) {
    const size_t corners = size_t{1} << axes;
    text.open(
        "static void {0}(const {1} *x, const {1} *offset, const {1} *mask, const {2} *axes, ptrdiff_t channels, "
        "ptrdiff_t taps, ptrdiff_t positions, ptrdiff_t pixels, {1} *columns)",
        name, t, axis);
    text.open("for (ptrdiff_t i = 0; i < taps * positions; ++i)");
    text.line("const ptrdiff_t tap = i / positions, position = i % positions;");
    text.line("ptrdiff_t k = tap, p = position, low[{}], at[{}];", axes, corners);
    text.line("{} part[{}], weight[{}];", t, axes, corners);
    text.line("int count = 0, inside = 1;");
    text.open("for (int d = {}; d >= 0; --d)", axes - 1);
    text.line("const {} *const a = &axes[d];", axis);
    text.line("const ptrdiff_t fixed = p % a->out * a->stride - a->pad + k % a->kernel * a->dilation;");
    text.line("const {} point = ({})fixed + offset[(tap * {} + d) * positions + position];", t, t, axes);
    text.line("const {} whole = {}(point);", t, floor);
    text.open("if (point > -1 && point < ({})a->in)", t);
    text.line("low[d] = (ptrdiff_t)whole;");
    text.line("part[d] = point - whole;");
    text.otherwise();
    text.line("inside = 0;");
    text.line("low[d] = 0;");
    text.line("part[d] = 0;");
    text.close();
    text.line("k /= a->kernel;");
    text.line("p /= a->out;");
    text.close();
    text.open("for (int corner = 0; inside && corner < {}; ++corner)", corners);
    text.line("ptrdiff_t index = 0;");
    text.line("{} share = 1;", t);
    text.line("int lies = 1;");
    text.open("for (int d = 0; d < {}; ++d)", axes);
    text.line("const int upper = (corner >> d) & 1;");
    text.line("const ptrdiff_t n = low[d] + upper;");
    text.line("lies &= n >= 0 && n < axes[d].in;");
    text.line("index = index * axes[d].in + n;");
    text.line("share = share * (upper ? part[d] : 1 - part[d]);");
    text.close();
    text.line("if (!lies || share == 0) continue;");
    text.line("at[count] = index;");
    text.line("weight[count++] = share;");
    text.close();
    text.open("for (ptrdiff_t c = 0; c < channels; ++c)");
    text.line("{} sum = 0;", t);
    text.open("for (int n = 0; n < count; ++n)");
    text.line("const {} term = weight[n] * x[c * pixels + at[n]];", t);
    text.line("sum = sum + term;");
    text.close();
    text.line("columns[(c * taps + tap) * positions + position] = mask != NULL ? sum * mask[i] : sum;");
    text.close();
    text.close();
    text.close();
  });
}

void write_deform_conv(const Call& call, std::string& why) {
  Writer& w = call.writer;
  Functions& f = w.functions();
  Text& text = w.text();
  const auto& attributes = call.node.attributes;
  const Dims x = call.dims(kData), weights = call.dims(kWeight), y = call.result_dims();
  const auto shape = nn::conv_shape(attributes, x, weights, y);
  if (!shape.ok()) {
    why = "its sizes do not fit";
    return;
  }
  if (product(y, 0, y.size()) == 0) return;
  const size_t axes = x.size() - 2;
  const int64_t groups = attributes.get_int("group", 1), offset_groups = attributes.get_int("offset_group", 1);
  const int64_t channels = x[1], filters = weights[0], taps = product(weights, 2, weights.size()),
                positions = product(y, 2, y.size()), pixels = product(x, 2, x.size());
  const int64_t m = filters / groups, k = channels / groups * taps;
  const ElementType type = call.type(kData), wide = wide_type(type);
  const std::string_view t = stored(wide);
  text.open("");
  const std::string data = operand(call, kData, wide, "wide_data"),
                    filter = operand(call, kWeight, wide, "wide_filter"),
                    offset = operand(call, kOffset, wide, "wide_offset"),
                    bias = operand(call, kBias, wide, "wide_bias"), mask = operand(call, kMask, wide, "wide_mask");
  std::string list;
  for (size_t d = 0; d < axes; ++d) {
    list += fmt::format("{}{{{}, {}, {}, {}, {}, {}}}", d > 0 ? ", " : "", x[d + 2], y[d + 2], weights[d + 2],
                        shape->stride[d], shape->dilation[d], shape->pad_begin[d]);
  }
  const std::string table = w.variable("axes"), columns = w.variable("columns");
  text.line("static const {} {}[{}] = {{{}}};", axis_type(f), table, axes, list);
  text.line("{} *const {} = {};", t, columns, room(w, wide, channels * taps * positions));
  std::string out = call.out();
  if (type != wide) {
    out = w.variable("wide_out");
    text.line("{} *const {} = {};", t, out, room(w, wide, product(y, 0, y.size())));
  }
  text.open("for (ptrdiff_t b = 0; b < {}; ++b)", x[0]);
  const int64_t own = channels / offset_groups;
  text.open("for (ptrdiff_t g = 0; g < {}; ++g)", offset_groups);
  const std::string field = fmt::format("(b * {} + g) * {}", offset_groups, taps);
  text.line("{}({} + (b * {} + g * {}) * {}, {} + {} * {}, {}, {}, {}, {}, {}, {}, {} + g * {});",
            columns_function(f, wide, axes), data, channels, own, pixels, offset, field,
            static_cast<int64_t>(axes) * positions,
            mask.empty() ? "NULL" : fmt::format("{} + {} * {}", mask, field, positions), table, own, taps, positions,
            pixels, columns, own * taps * positions);
  text.close();
  text.open("for (ptrdiff_t g = 0; g < {}; ++g)", groups);
  text.line("const {} *const a = {} + g * {};", t, filter, m * k);
  text.line("const {} *const x = {} + g * {};", t, columns, k * positions);
  text.line("{} *const y = {} + (b * {} + g * {}) * {};", t, out, filters, m, positions);
  if (positions <= kernels::kGemmDotColumns) {
    text.line("for (ptrdiff_t i = 0; i < {0}; ++i) y[i] = {1}(a + i / {2} * {3}, 1, x + i % {2}, {2}, {3});",
              m * positions, dot_function(f, wide), positions, k);
  } else {
    text.line("{0}(a, {1}, 1, x, {2}, y, {2}, {3}, {2}, {1});", product_function(f, wide, m), k, positions, m);
  }
  if (!bias.empty()) {
    text.line("for (ptrdiff_t i = 0; i < {}; ++i) y[i] = y[i] + {}[g * {} + i / {}];", m * positions, bias, m,
              positions);
  }
  text.close();
  text.close();
  if (type != wide) {
    text.line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {};", product(y, 0, y.size()), call.out(),
              w.converted(wide, type, out + "[i]"));
  }
  text.close();
}

constexpr OperatorRow kRows[] = {{"DeformConv", "", write_deform_conv}};

}  // namespace

std::span<const OperatorRow> deform_conv_operators() {
  return kRows;
}

}  // namespace treadle::c
