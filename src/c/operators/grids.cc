// AffineGrid and GridSample (ops/image/).

#include <cmath>
#include <vector>

#include "c/values.h"
#include "c/writer.h"
#include "op/op_def.h"
#include "ops/image/grid_arithmetic.h"

namespace treadle::c {

namespace {

using V = Value<double>;
constexpr ElementType kDouble = ElementType::kDouble;

V argument(const char* name) {
  return V::of(name);
}

// --- AffineGrid

void write_affine_grid(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims out = call.result_dims();
  const int64_t batches = out[0], rank = out.back(), points = product(out, 1, out.size() - 1);
  if (batches * points == 0) return;
  const ElementType type = call.type(0);
  const bool corners = call.node.attributes.get_int("align_corners", 0) != 0;
  const int64_t row = rank + 1;
  text.open("for (ptrdiff_t b = 0; b < {}; ++b)", batches);
  text.open("for (ptrdiff_t p = 0; p < {}; ++p)", points);
  // Coordinates from the innermost axis on; the last one is 1.
  int64_t inner = 1;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t size = out[static_cast<size_t>(rank - d)];
    std::vector<double> coordinates;
    for (int64_t i = 0; i < size; ++i) coordinates.push_back(image_ops::grid_coordinate(i, size, corners));
    const std::string table = w.table("coordinates", kDouble, coordinates.data(), coordinates.size());
    text.line("const double c{} = {}[p / {} % {}];", d, table, inner, size);
    inner *= size;
  }
  for (int64_t r = 0; r < rank; ++r) {
    const auto term = [&](int64_t d) {
      return w.converted(type, kDouble, fmt::format("{}[b * {} + {}]", call.in(0), rank * row, r * row + d));
    };
    for (int64_t d = 0; d < rank; ++d) text.line("const double m{}{} = {} * c{};", r, d, term(d), d);
    std::string sum = fmt::format("0 + m{}0", r);
    for (int64_t d = 1; d < rank; ++d) sum = fmt::format("({}) + m{}{}", sum, r, d);
    text.line("{}[(b * {} + p) * {} + {}] = {};", call.out(), points, rank, r,
              w.converted(kDouble, type, fmt::format("({}) + {}", sum, term(rank))));
  }
  text.close();
  text.close();
}

// --- GridSample

struct Sampling {
  std::string_view mode, padding;  // nearest, linear, cubic; zeros, border, reflection
  bool corners = false;
  int64_t rank = 0;
  ElementType type{}, grid{};

  int taps() const { return mode == "nearest" ? 1 : mode == "linear" ? 2 : 4; }
  // Few elements, which kernels add up in an order of their own.
  bool is_plain() const {
    return mode == "linear" && rank <= 2 && (type == ElementType::kFloat || type == ElementType::kDouble);
  }
};

std::string axis_type(Functions& f) {
  return f.get("grid_axis", [](Text& text, const std::string& name) {
    text.line("/* Elements along an axis of an image, the distance between them, and the borders. */");
    text.line("typedef struct {{ ptrdiff_t size, step; double low, high; }} {};", name);
  });
}

std::string reflect_function(Functions& f) {
  return write_function(f, "grid_reflected", kDouble, {"x", "low", "high"}, [] {
    return std::string(image_ops::reflected(argument("x"), argument("low"), argument("high")).v);
  });
}

// f(axis, i): the element that stands at position i; -1: a zero of the padding.
std::string index_function(Functions& f, std::string_view padding) {
  const std::string axis = axis_type(f), reflect = padding == "reflection" ? reflect_function(f) : "";
  return f.get(fmt::format("grid_index_{}", padding), [&](Text& text, const std::string& name) {
    text.open("static ptrdiff_t {}(const {} *a, ptrdiff_t i)", name, axis);
    text.line("if (i >= 0 && i < a->size) return i;");
    if (padding == "zeros") {
      text.line("return -1;");
    } else if (padding == "border") {
      text.line("return i < 0 ? 0 : a->size - 1;");
    } else {
      text.line("i = (ptrdiff_t){}((double)i, a->low, a->high);", reflect);
      text.line("return i < 0 ? 0 : i >= a->size ? a->size - 1 : i;");
    }
    text.close();
  });
}

// f(axis, x, index, weight): the elements around position x along an axis, and their weights.
std::string taps_function(Functions& f, const Sampling& s) {
  const std::string axis = axis_type(f), index = index_function(f, s.padding);
  const std::string floor = f.floor(kDouble), round = f.round_even(kDouble);
  const std::string reflect = s.padding == "reflection" ? reflect_function(f) : "";
  std::string near, far;
  if (s.mode == "cubic") {
    near = write_function(f, "cubic_near", kDouble, {"x"},
                          [] { return std::string(image_ops::cubic_near(argument("x")).v); });
    far = write_function(f, "cubic_far", kDouble, {"x"},
                         [] { return std::string(image_ops::cubic_far(argument("x")).v); });
  }
  return f.get(fmt::format("grid_taps_{}_{}", s.mode, s.padding), [&](Text& text, const std::string& name) {
    text.open("static void {}(const {} *a, double x, ptrdiff_t *index, double *weight)", name, axis);
    text.line("const double size = (double)a->size;");
    if (s.mode == "nearest") text.line("x = {}(x);", round);
    text.line("if (x - x != 0) x = -4; /* no number */");
    if (s.padding == "border") {
      text.line("if (x < a->low || x > a->high) x = x < 0 ? 0 : size - 1 < x ? size - 1 : x;");
    } else if (s.padding == "reflection") {
      text.line("if (x < a->low || x > a->high) x = {}(x, a->low, a->high);", reflect);
    }
    text.line("x = x < -4 ? -4 : size + 4 < x ? size + 4 : x;");
    if (s.mode == "nearest") {
      text.line("index[0] = {}(a, (ptrdiff_t)x);", index);
      text.line("weight[0] = 1;");
    } else {
      text.line("const double base = {}(x), t = x - base;", floor);
      text.line("const ptrdiff_t first = (ptrdiff_t)base{};", s.mode == "cubic" ? " - 1" : "");
      text.line("for (int k = 0; k < {}; ++k) index[k] = {}(a, first + k);", s.taps(), index);
      if (s.mode == "linear") {
        text.line("weight[0] = 1 - t;");
        text.line("weight[1] = t;");
      } else {
        text.line("weight[0] = {}(t + 1);", far);
        text.line("weight[1] = {}(t);", near);
        text.line("weight[2] = {}(1 - t);", near);
        text.line("weight[3] = {}(2 - t);", far);
      }
    }
    text.close();
  });
}

// The same for linear interpolation, where most positions lie inside.
std::string pair_function(Functions& f, const Sampling& s) {
  const std::string axis = axis_type(f), taps = taps_function(f, s);
  return f.get(fmt::format("grid_pair_{}", s.padding), [&](Text& text, const std::string& name) {
    text.open("static void {}(const {} *a, double x, ptrdiff_t *index, double *weight)", name, axis);
    text.open("if (x >= 0 && x < (double)(a->size - 1))");
    text.line("const double t = x - (double)(ptrdiff_t)x;");
    text.line("index[0] = (ptrdiff_t)x;");
    text.line("index[1] = index[0] + 1;");
    text.line("weight[0] = 1 - t;");
    text.line("weight[1] = t;");
    text.otherwise();
    text.line("{}(a, x, index, weight);", taps);
    text.close();
    text.close();
  });
}

// f(axes, grid, offsets, weights): the elements of a plane around a point, and how many there are. `grid`: the point's
// numbers, the innermost axis first. An offset -1 is a zero of the padding.
std::string point_function(Writer& w, const Sampling& s) {
  Functions& f = w.functions();
  const std::string axis = axis_type(f), taps = s.is_plain() ? pair_function(f, s) : taps_function(f, s);
  const std::string position = write_function(
      f, s.corners ? "grid_position_corners" : "grid_position_borders", kDouble, {"x", "size"},
      [&] { return std::string(image_ops::grid_position(argument("x"), argument("size"), s.corners).v); });
  const auto locate = [&](Text& text, const std::string& number, const std::string& at, const std::string& to) {
    const std::string x =
        fmt::format("{}({}, (double){}.size)", position, w.converted(s.grid, kDouble, "grid[" + number + "]"), at);
    text.line("{}(&{}, {}, {});", taps, at, s.grid == kDouble ? x : "(double)(float)" + x, to);
  };
  const std::string name = fmt::format("grid_point_{}_{}_{}{}_{}{}", s.mode, s.padding, s.corners ? "corners_" : "",
                                       s.rank, suffix(s.grid), s.is_plain() ? "_plain" : "");
  return f.get(name, [&](Text& text, const std::string& full) {
    text.open("static int {}(const {} *axes, const {} *grid, ptrdiff_t *offsets, double *weights)", full, axis,
              stored(s.grid));
    if (s.is_plain()) {
      text.line("ptrdiff_t columns[2], rows[2] = {{0, -1}};");
      text.line("double column_weights[2], row_weights[2] = {{1, 0}};");
      text.line("int count = 0;");
      locate(text, "0", fmt::format("axes[{}]", s.rank - 1), "columns, column_weights");
      if (s.rank == 2) locate(text, "1", "axes[0]", "rows, row_weights");
      text.open("for (int i = 0; i < 2; ++i)");
      text.line("if (rows[i] < 0) continue;");
      text.open("for (int k = 0; k < 2; ++k)");
      text.line("if (columns[k] < 0) continue;");
      text.line("offsets[count] = rows[i] * {} + columns[k];", s.rank == 2 ? "axes[0].step" : "0");
      text.line("weights[count++] = row_weights[i] * column_weights[k];");
      text.close();
      text.close();
    } else {
      text.line("int count = 1;");
      text.line("offsets[0] = 0;");
      text.line("weights[0] = 1;");
      text.open("for (int d = 0; d < {}; ++d)", s.rank);
      text.line("ptrdiff_t index[{}];", s.taps());
      text.line("double weight[{}];", s.taps());
      locate(text, fmt::format("{} - d", s.rank - 1), "axes[d]", "index, weight");
      text.open("for (int k = {}; k >= 0; --k)", s.taps() - 1);
      text.open("for (int i = 0; i < count; ++i)");
      text.line("const int outside = offsets[i] < 0 || index[k] < 0;");
      text.line("offsets[k * count + i] = outside ? -1 : offsets[i] + index[k] * axes[d].step;");
      text.line("weights[k * count + i] = weights[i] * weight[k];");
      text.close();
      text.close();
      text.line("count *= {};", s.taps());
      text.close();
    }
    text.line("return count;");
    text.close();
  });
}

void write_grid_sample(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const auto& attributes = call.node.attributes;
  const Dims x = call.dims(0), y = call.result_dims();
  Sampling s;
  s.mode = attributes.get_string("mode", "linear");
  if (s.mode.starts_with("bi")) s.mode.remove_prefix(2);
  s.padding = attributes.get_string("padding_mode", "zeros");
  s.corners = attributes.get_int("align_corners", 0) != 0;
  s.rank = static_cast<int64_t>(x.size()) - 2;
  s.type = call.type(0), s.grid = call.type(1);
  const int64_t points = product(y, 2, y.size()), plane = product(x, 2, x.size());
  if (product(y, 0, y.size()) == 0) return;
  std::string list;
  for (size_t d = 2; d < x.size(); ++d) {
    const double size = static_cast<double>(x[d]);
    list += fmt::format("{}{{{}, {}, {}, {}}}", d > 2 ? ", " : "", x[d], product(x, d + 1, x.size()),
                        literal(s.corners ? 0 : -0.5), literal(size - (s.corners ? 1.0 : 0.5)));
  }
  text.open("");
  const std::string axes = w.variable("axes");
  text.line("static const {} {}[{}] = {{{}}};", axis_type(w.functions()), axes, s.rank, list);
  const std::string point = point_function(w, s);
  const int most = static_cast<int>(std::pow(s.taps(), s.rank));
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", y[0] * points);
  text.line("const ptrdiff_t b = i / {0}, p = i % {0};", points);
  const std::string offsets = w.variable("offsets"), weights = w.variable("point_weights");
  text.line("ptrdiff_t {}[{}];", offsets, most);
  text.line("double {}[{}];", weights, most);
  const std::string find =
      fmt::format("{}({}, {} + i * {}, {}, {})", point, axes, call.in(1), s.rank, offsets, weights);
  if (s.mode == "nearest") {
    text.line("(void){};", find);
  } else {
    text.line("const int n = {};", find);
  }
  text.open("for (ptrdiff_t c = b * {0}; c < (b + 1) * {0}; ++c)", x[1]);
  const auto element = [&](const char* k) { return fmt::format("{}[c * {} + {}[{}]]", call.in(0), plane, offsets, k); };
  const std::string to = fmt::format("{}[c * {} + p]", call.out(), points);
  if (s.mode == "nearest") {
    text.line("{} = {}[0] < 0 ? 0 : {};", to, offsets, element("0"));
  } else {
    text.line("double sum = 0;");
    text.open("for (int k = 0; k < n; ++k)");
    text.line("if ({}[k] < 0) continue;", offsets);
    text.line("const double a = {}[k] * {};", weights, w.converted(s.type, kDouble, element("k")));
    // Four elements are added up from the first on, others from zero on, which differs for -0.
    text.line("sum = {}sum + a;", s.is_plain() ? "n == 4 && k == 0 ? a : " : "");
    text.close();
    text.line("{} = {};", to, w.converted(kDouble, s.type, "sum"));
  }
  text.close();
  text.close();
  text.close();
}

constexpr OperatorRow kRows[] = {{"AffineGrid", "", write_affine_grid}, {"GridSample", "", write_grid_sample}};

}  // namespace

std::span<const OperatorRow> grid_operators() {
  return kRows;
}

}  // namespace treadle::c
