// RoiAlign (ops/image/regions.cc), Col2Im and MaxUnpool (ops/image/windows.cc).

#include <algorithm>

#include "c/writer.h"
#include "op/op_def.h"

namespace treadle::c {

namespace {

// --- RoiAlign

std::string split_function(Functions& f) {
  const std::string split = f.get("roi_split", [](Text& text, const std::string& name) {
    text.line("/* A sampled position along an axis: between two elements, or too far outside to count. */");
    text.line("typedef struct {{ ptrdiff_t low, high; double rest; int inside; }} {};", name);
  });
  return f.get("split_sample", [&](Text& text, const std::string& name) {
    text.line("/* Sample i of `count` in a bin. */");
    text.open("static {} {}(double start, double size, ptrdiff_t bin, ptrdiff_t i, ptrdiff_t count, ptrdiff_t n)",
              split, name);
    text.line("{} at = {{0, 0, 0, 0}};", split);
    text.line("const double share = ((double)i + 0.5) / (double)count;");
    text.line("const double within = ((double)bin + share) * size;");
    text.line("const double x = start + within;");
    text.line("if (!(x >= -1 && x <= (double)n)) return at;");
    text.line("const double inner = x < 0 ? 0 : x;");
    text.line("at.inside = 1;");
    text.line("at.low = (ptrdiff_t)inner;");
    text.open("if (at.low >= n - 1)");
    text.line("at.low = at.high = n - 1;");
    text.otherwise();
    text.line("at.high = at.low + 1;");
    text.line("at.rest = inner - (double)at.low;");
    text.close();
    text.line("return at;");
    text.close();
  });
}

// f(planes, channels, height, width, roi, scale, offset, sampling, out_height, out_width, y): one region. `roi`: four
// doubles.
std::string region_function(Writer& w, ElementType type, bool max, bool half_pixel) {
  Functions& f = w.functions();
  const std::string sample = split_function(f), split = f.prefix() + "_roi_split";
  const std::string ceil = f.ceil(ElementType::kDouble);
  const std::string count = f.get("samples_of_bin", [&](Text& text, const std::string& name) {
    text.open("static ptrdiff_t {}(double bin)", name);
    text.line("const double count = {}(bin);", ceil);
    text.line("if (!(bin > 0)) return 0;");
    text.line("return (ptrdiff_t)(4096 < count ? 4096 : count);");
    text.close();
  });
  const std::string name =
      fmt::format("roi_align_{}{}_{}", max ? "max" : "average", half_pixel ? "_half_pixel" : "", suffix(type));
  return f.get(name, [&](Text& text, const std::string& full) {
    text.open(
        "static void {0}(const {1} *planes, ptrdiff_t channels, ptrdiff_t height, ptrdiff_t width, const double *roi, "
        "double scale, ptrdiff_t sampling, ptrdiff_t out_height, ptrdiff_t out_width, {1} *y)",
        full, stored(type));
    for (int i = 0; i < 4; ++i) {
      text.line("const double scaled{0} = roi[{0}] * scale, corner{0} = scaled{0} - {1};", i, half_pixel ? 0.5 : 0.0);
    }
    text.line("double across = corner2 - corner0, down = corner3 - corner1;");
    if (!half_pixel) text.line("across = across < 1 ? 1 : across, down = down < 1 ? 1 : down;");
    text.line("const double bin_height = down / (double)out_height, bin_width = across / (double)out_width;");
    text.line("const ptrdiff_t rows = sampling > 0 ? sampling : {}(bin_height);", count);
    text.line("const ptrdiff_t columns = sampling > 0 ? sampling : {}(bin_width);", count);
    text.open("for (ptrdiff_t i = 0; i < channels * out_height * out_width; ++i)");
    text.line("const ptrdiff_t bin_y = i / out_width % out_height, bin_x = i % out_width;");
    text.line("const {} *const plane = planes + i / (out_height * out_width) * height * width;", stored(type));
    text.line("double sum = 0;");
    if (max) text.line("int first = 1;");
    text.open("for (ptrdiff_t r = 0; r < rows; ++r)");
    text.line("const {} v = {}(corner1, bin_height, bin_y, r, rows, height);", split, sample);
    text.open("for (ptrdiff_t c = 0; c < columns; ++c)");
    text.line("const {} h = {}(corner0, bin_width, bin_x, c, columns, width);", split, sample);
    text.line("ptrdiff_t at[4] = {{0, 0, 0, 0}};");
    text.line("double weight[4] = {{0, 0, 0, 0}};");
    text.open("if (v.inside && h.inside)");
    text.line("at[0] = v.low * width + h.low, at[1] = v.low * width + h.high;");
    text.line("at[2] = v.high * width + h.low, at[3] = v.high * width + h.high;");
    text.line("weight[0] = (1 - v.rest) * (1 - h.rest), weight[1] = (1 - v.rest) * h.rest;");
    text.line("weight[2] = v.rest * (1 - h.rest), weight[3] = v.rest * h.rest;");
    text.close();
    text.open("for (int k = 0; k < 4; ++k)");
    text.line("const double value = weight[k] * {};", w.converted(type, ElementType::kDouble, "plane[at[k]]"));
    if (max) {
      text.line("sum = first || sum < value ? value : sum;");
      text.line("first = 0;");
    } else {
      text.line("sum = sum + value;");
    }
    text.close();
    text.close();
    text.close();
    if (!max) text.line("sum = sum / (double)(rows * columns > 1 ? rows * columns : 1);");
    text.line("y[i] = {};", w.converted(ElementType::kDouble, type, "sum"));
    text.close();
    text.close();
  });
}

void write_roi_align(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const auto& attributes = call.node.attributes;
  const Dims x = call.dims(0), y = call.result_dims();
  if (product(y, 0, y.size()) == 0) return;
  const ElementType type = call.type(0);
  const bool half_pixel = attributes.get_string("coordinate_transformation_mode", "output_half_pixel") == "half_pixel";
  const std::string region = region_function(w, type, attributes.get_string("mode", "avg") == "max", half_pixel);
  text.open("for (ptrdiff_t r = 0; r < {}; ++r)", y[0]);
  text.line("const int64_t b = {}[r];", call.in(2));
  text.line("if (b < 0 || b >= {}) return {};", x[0], w.error("INDEX_OUT_OF_RANGE"));
  text.line("double d[4];");
  text.line("for (int k = 0; k < 4; ++k) d[k] = {};",
            w.converted(type, ElementType::kDouble, call.in(1) + "[r * 4 + k]"));
  text.line("{}({} + b * {}, {}, {}, {}, d, {}, {}, {}, {}, {} + r * {});", region, call.in(0), product(x, 1, 4), x[1],
            x[2], x[3], literal(static_cast<double>(attributes.get_float("spatial_scale", 1))),
            attributes.get_int("sampling_ratio", 0), y[2], y[3], call.out(), product(y, 1, 4));
  text.close();
}

// --- Windows that are added to images

// An attribute with one value for each axis (two for pads), or the default for each.
Dims per_axis(const Call& call, const char* name, size_t count, int64_t otherwise) {
  const ir::Attribute* given = call.node.attributes.find(name);
  if (!given) return Dims(count, otherwise);
  const auto values = given->as_ints();
  return Dims(values.begin(), values.end());
}

void write_max_unpool(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims x = call.dims(0), out = call.result_dims();
  const size_t rank = x.size() - 2;
  const Dims kernel = per_axis(call, "kernel_shape", rank, 1), strides = per_axis(call, "strides", rank, 1),
             pads = per_axis(call, "pads", 2 * rank, 0);
  // The shape that indices refer to; the result may be larger.
  Dims shape{x[0], x[1]};
  for (size_t d = 0; d < rank; ++d) {
    shape.push_back((x[d + 2] - 1) * strides[d] - pads[d] - pads[rank + d] + kernel[d]);
  }
  const int64_t total = product(shape, 0, shape.size()), results = product(out, 0, out.size()),
                count = product(x, 0, x.size());
  if (results == 0) return;
  text.line("memset({}, 0, {});", call.out(), static_cast<size_t>(results) * byte_width(call.type(0)));
  if (count == 0) return;
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", count);
  text.line("const int64_t at = {}[i];", call.in(1));
  text.line("if (at < 0 || at >= {}) return {};", total, w.error("INDEX_OUT_OF_RANGE"));
  std::string to = "at";
  if (shape != out) {
    to.clear();
    for (size_t d = 0; d < shape.size(); ++d) {
      to += fmt::format("{}at / {} % {} * {}", d > 0 ? " + " : "", product(shape, d + 1, shape.size()), shape[d],
                        product(out, d + 1, out.size()));
    }
  }
  text.line("{}[{}] = {}[i];", call.out(), to, call.in(0));
  text.close();
}

void write_col2im(const Call& call, std::string& why) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Tensor* block = call.constant(2);
  if (!block) {
    why = "its block is known only when it runs";
    return;
  }
  const ElementType type = call.type(0);
  const Dims x = call.dims(0), out = call.result_dims(), image(out.begin() + 2, out.end());
  const size_t rank = image.size();
  const Dims dilations = per_axis(call, "dilations", rank, 1), strides = per_axis(call, "strides", rank, 1),
             pads = per_axis(call, "pads", 2 * rank, 0);
  const int64_t planes = out[0] * out[1], results = product(out, 0, out.size());
  if (results == 0) return;
  text.line("memset({}, 0, {});", call.out(), static_cast<size_t>(results) * byte_width(type));
  if (product(x, 0, x.size()) == 0) return;
  Dims sizes, counts;
  for (size_t d = 0; d < rank; ++d) {
    sizes.push_back(block->data<int64_t>()[d]);
    const int64_t room = image[d] + pads[d] + pads[rank + d] - (dilations[d] * (sizes[d] - 1) + 1);
    counts.push_back(room < 0 ? 0 : room / strides[d] + 1);
  }
  const std::string from = w.variable("columns");
  text.open("");
  text.line("const {} *{} = {};", stored(type), from, call.in(0));
  text.open("for (ptrdiff_t p = 0; p < {}; ++p)", planes);
  std::string at = fmt::format("p * {}", product(image, 0, rank)), inside;
  for (size_t d = 0; d < rank; ++d) text.open("for (ptrdiff_t b{0} = 0; b{0} < {1}; ++b{0})", d, sizes[d]);
  for (size_t d = 0; d < rank; ++d) {
    const std::string step = d + 1 == rank ? ", ++" + from : "";
    text.open("for (ptrdiff_t c{0} = 0; c{0} < {1}; ++c{0}{2})", d, counts[d], step);
  }
  for (size_t d = 0; d < rank; ++d) {
    text.line("const ptrdiff_t i{0} = c{0} * {1} + b{0} * {2} - {3};", d, strides[d], dilations[d], pads[d]);
    inside += fmt::format("{}i{} >= 0 && i{} < {}", d > 0 ? " && " : "", d, d, image[d]);
    at += fmt::format(" + i{} * {}", d, product(image, d + 1, rank));
  }
  text.open("if ({})", inside);
  text.line("{} *const to = {} + {};", stored(type), call.out(), at);
  text.line("*to = {};", combined(w, "add", type, "*to", "*" + from));
  text.close();
  for (size_t d = 0; d < 2 * rank + 2; ++d) text.close();
}

constexpr OperatorRow kRows[] = {
    {"RoiAlign", "", write_roi_align}, {"MaxUnpool", "", write_max_unpool}, {"Col2Im", "", write_col2im}};

}  // namespace

std::span<const OperatorRow> image_operators() {
  return kRows;
}

}  // namespace treadle::c
