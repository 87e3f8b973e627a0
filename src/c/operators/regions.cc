// MaxRoiPool (ops/image/max_roi_pool.cc), CropAndResize (ops/image/crop_and_resize.cc).

#include "c/writer.h"
#include "op/op_def.h"

namespace treadle::c {

namespace {

// f(x): the nearest whole number, halves away from zero.
std::string round_function(Functions& f, ElementType type) {
  const std::string floor = f.floor(type);
  return f.get(fmt::format("round_away_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static {0} {1}({0} x)", stored(type), name);
    text.line("const {} size = x < 0 ? -x : x, whole = {}(size);", stored(type), floor);
    text.line("const {} nearest = size - whole >= 0.5f ? whole + 1 : whole;", stored(type));
    text.line("return x < 0 ? -nearest : nearest;");
    text.close();
  });
}

// --- MaxRoiPool

// f(plane, height, width, roi, pooled_height, pooled_width, y): one region of one plane; `roi`: left, top, columns,
// rows.
std::string pool_function(Writer& w, ElementType type) {
  Functions& f = w.functions();
  const ElementType wide = type == ElementType::kFloat ? type : ElementType::kDouble;
  const std::string bound = f.get("clipped_bin", [](Text& text, const std::string& name) {
    text.open("static int64_t {}(int64_t at, int64_t size)", name);
    text.line("return at < 0 ? 0 : at > size ? size : at;");
    text.close();
  });
  return f.get(fmt::format("max_roi_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open(
        "static void {0}(const {1} *plane, int64_t height, int64_t width, const int64_t *roi, int64_t pooled_height, "
        "int64_t pooled_width, {1} *y)",
        name, stored(type));
    text.open("for (int64_t i = 0; i < pooled_height * pooled_width; ++i)");
    text.line("const int64_t r = i / pooled_width, c = i % pooled_width;");
    for (const auto& [axis, at, size, count, start] : {std::tuple("row", "r", "height", "pooled_height", 1),
                                                       std::tuple("column", "c", "width", "pooled_width", 0)}) {
      text.line("const int64_t {}_begin = {}({} * roi[{}] / {} + roi[{}], {});", axis, bound, at, start + 2, count,
                start, size);
      text.line("const int64_t {0}_end = {1}((({2} + 1) * roi[{3}] + {4} - 1) / {4} + roi[{5}], {6});", axis, bound, at,
                start + 2, count, start, size);
    }
    text.line("{} most = row_begin < row_end && column_begin < column_end ? ({})(-1.0 / 0.0) : 0;", stored(wide),
              stored(wide));
    text.open("for (int64_t column = column_begin; column < column_end; ++column)");
    text.open("for (int64_t row = row_begin; row < row_end; ++row)");
    text.line("const {} a = {};", stored(wide), w.converted(type, wide, "plane[row * width + column]"));
    text.line("most = a > most ? a : most;");
    text.close();
    text.close();
    text.line("y[i] = {};", w.converted(wide, type, "most"));
    text.close();
    text.close();
  });
}

void write_max_roi_pool(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims x = call.dims(0), y = call.result_dims();
  if (product(y, 0, y.size()) == 0) return;
  const ElementType type = call.type(0);
  const double scale = static_cast<double>(call.node.attributes.get_float("spatial_scale", 1));
  const std::string rounded = w.functions().get(
      "roi_corner",
      [&, round = round_function(w.functions(), ElementType::kDouble)](Text& body, const std::string& name) {
        body.open("static int64_t {}(double x)", name);
        body.line("const double nearest = x != x ? 0 : {}(x);", round);
        body.line("return (int64_t)(nearest < -1e9 ? -1e9 : nearest > 1e9 ? 1e9 : nearest);");
        body.close();
      });
  const std::string pool = pool_function(w, type);
  text.open("for (ptrdiff_t r = 0; r < {}; ++r)", y[0]);
  text.line("double d[5];");
  text.line("int64_t c[4];");
  text.line("for (int k = 0; k < 5; ++k) d[k] = {};",
            w.converted(type, ElementType::kDouble, call.in(1) + "[r * 5 + k]"));
  text.line("const int64_t n = {}(d[0]);", rounded);
  text.line("if (n < 0 || n >= {}) return {};", x[0], w.error("INDEX_OUT_OF_RANGE"));
  text.line("for (int k = 0; k < 4; ++k) c[k] = {}(d[k + 1] * {});", rounded, literal(scale));
  text.line("for (int k = 0; k < 2; ++k) c[k + 2] = c[k + 2] - c[k] + 1 > 1 ? c[k + 2] - c[k] + 1 : 1;");
  text.line("for (ptrdiff_t k = 0; k < {}; ++k)", x[1]);
  text.line("  {}({} + (n * {} + k) * {}, {}, {}, c, {}, {}, {} + (r * {} + k) * {});", pool, call.in(0), x[1],
            x[2] * x[3], x[2], x[3], y[2], y[3], call.out(), x[1], y[2] * y[3]);
  text.close();
}

// --- CropAndResize

constexpr ElementType kFloat = ElementType::kFloat;

// f(from, to, at, count, size): the position of element `at` of `count` between two shares of an axis.
std::string position_function(Functions& f) {
  return f.get("crop_position", [](Text& text, const std::string& name) {
    text.open("static float {}(float from, float to, ptrdiff_t at, ptrdiff_t count, ptrdiff_t size)", name);
    text.line("const float last = (float)(size - 1);");
    text.line("if (count == 1) return 0.5f * (from + to) * last;");
    text.line("if (at == count - 1) return to * last;");
    text.line("const float step = (to - from) * last / (float)(count - 1);");
    text.line("const float start = from * last, more = (float)at * step;");
    text.line("return start + more;");
    text.close();
  });
}

// f(plane, width, y, x): an element of a plane between its neighbours.
std::string between_function(Writer& w, ElementType type) {
  Functions& f = w.functions();
  const std::string floor = f.floor(kFloat), ceil = f.ceil(kFloat);
  return f.get(fmt::format("crop_between_{}", suffix(type)), [&](Text& text, const std::string& name) {
    text.open("static float {}(const {} *plane, ptrdiff_t width, float y, float x)", name, stored(type));
    text.line("const float top = {0}(y), left = {0}(x);", floor);
    text.line("const ptrdiff_t rows[2] = {{(ptrdiff_t)top, (ptrdiff_t){}(y)}};", ceil);
    text.line("const ptrdiff_t l = (ptrdiff_t)left, r = (ptrdiff_t){}(x);", ceil);
    text.line("float of_row[2];");
    text.open("for (int k = 0; k < 2; ++k)");
    text.line("const float a = {};", w.converted(type, kFloat, "plane[rows[k] * width + l]"));
    text.line("const float b = {};", w.converted(type, kFloat, "plane[rows[k] * width + r]"));
    text.line("const float more = (b - a) * (x - left);");
    text.line("of_row[k] = a + more;");
    text.close();
    text.line("const float more = (of_row[1] - of_row[0]) * (y - top);");
    text.line("return of_row[0] + more;");
    text.close();
  });
}

void write_crop_and_resize(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const auto& attributes = call.node.attributes;
  const Dims x = call.dims(0), y = call.result_dims();
  if (product(y, 0, y.size()) == 0) return;
  const ElementType type = call.type(0);
  const bool nearest = attributes.get_string("mode") == "nearest";
  const std::string position = position_function(w.functions());
  text.open("for (ptrdiff_t r = 0; r < {}; ++r)", y[0]);
  text.line("const int32_t n = {}[r];", call.in(2));
  text.line("if (n < 0 || n >= {}) return {};", x[0], w.error("INDEX_OUT_OF_RANGE"));
  text.line("float c[4];");
  text.line("for (int k = 0; k < 4; ++k) c[k] = {};", w.converted(type, kFloat, call.in(1) + "[r * 4 + k]"));
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", y[2] * y[3]);
  text.line("const float v = {}(c[0], c[2], i / {}, {}, {});", position, y[3], y[2], x[2]);
  text.line("const float h = {}(c[1], c[3], i % {}, {}, {});", position, y[3], y[3], x[3]);
  text.line("const int in = v >= 0 && v <= {} && h >= 0 && h <= {};", literal(static_cast<float>(x[2] - 1)),
            literal(static_cast<float>(x[3] - 1)));
  text.open("for (ptrdiff_t k = 0; k < {}; ++k)", x[1]);
  const std::string plane = fmt::format("{} + (n * {} + k) * {}", call.in(0), x[1], x[2] * x[3]);
  std::string inside;
  if (nearest) {
    const std::string round = round_function(w.functions(), kFloat);
    inside = fmt::format("({0})[(ptrdiff_t){1}(v) * {2} + (ptrdiff_t){1}(h)]", plane, round, x[3]);
  } else {
    inside = w.converted(kFloat, type, fmt::format("{}({}, {}, v, h)", between_function(w, type), plane, x[3]));
  }
  text.line("{}[(r * {} + k) * {} + i] = in ? {} : {};", call.out(), x[1], y[2] * y[3], inside,
            w.converted(kFloat, type, literal(attributes.get_float("extrapolation_value"))));
  text.close();
  text.close();
  text.close();
}

constexpr OperatorRow kRows[] = {
    {"MaxRoiPool", "", write_max_roi_pool},
    {"CropAndResize", "com.microsoft", write_crop_and_resize},
};

}  // namespace

std::span<const OperatorRow> region_operators() {
  return kRows;
}

}  // namespace treadle::c
