// Operators that pick, place, order or accumulate elements (ops/tensor/, ops/reduce/cumulative.cc), and those that
// copy.

#include <algorithm>

#include "c/writer.h"
#include "op/clip_bounds.h"
#include "op/op_def.h"
#include "ops/math/cast_options.h"

namespace treadle::c {

using kernels::ElementwiseOp;

std::string combined(Writer& w, std::string_view how, ElementType type, const std::string& old,
                     const std::string& with) {
  if (how == "none") return with;
  if (type == ElementType::kBool) {
    const bool both = how == "mul" || how == "min";
    return fmt::format("(uint8_t)({} {} {})", old, both ? "&" : "|", with);
  }
  const ElementType wide = wide_type(type);
  const std::string a = w.converted(type, wide, old), b = w.converted(type, wide, with);
  if (how == "add" || how == "mul") {
    const std::string function =
        w.functions().operation(how == "add" ? ElementwiseOp::kAdd : ElementwiseOp::kMul, wide);
    return w.converted(wide, type, fmt::format("{}({}, {})", function, a, b));
  }
  const std::string name = fmt::format("{}_of_two_{}", how, suffix(wide));
  const std::string function = w.functions().get(name, [&](Text& text, const std::string& full) {
    text.open("static inline {0} {1}({0} a, {0} b)", stored(wide), full);
    const char* sign = how == "min" ? ">=" : "<=";
    text.line("return {}b {} a ? a : b;", is_float(wide) ? "a != a || " : "", sign);
    text.close();
  });
  return w.converted(wide, type, fmt::format("{}({}, {})", function, a, b));
}

namespace {

size_t axis_of(const Call& call, int64_t otherwise) {
  const auto rank = static_cast<int64_t>(call.dims(0).size());
  const int64_t axis = call.node.attributes.get_int("axis", otherwise);
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

// Declares `name`, the index `from` counted from the front, and returns an error if it lies outside of [0, n).
void write_index(Writer& w, const char* name, const std::string& from, int64_t n) {
  w.text().line("ptrdiff_t {} = (ptrdiff_t){};", name, from);
  w.text().line("if ({0} < 0) {0} += {1};", name, n);
  w.text().line("if ({0} < 0 || {0} >= {1}) return {2};", name, n, w.error("INDEX_OUT_OF_RANGE"));
}

// Loops over the positions of `dims`, i0 to i<rank - 1>.
void open_loops(Writer& w, const Dims& dims) {
  for (size_t d = 0; d < dims.size(); ++d) {
    w.text().open("for (ptrdiff_t i{0} = 0; i{0} < {1}; ++i{0})", d, dims[d]);
  }
}
void close_loops(Writer& w, const Dims& dims) {
  for (size_t d = 0; d < dims.size(); ++d) w.text().close();
}
std::string position(const Dims& strides, size_t without = SIZE_MAX) {
  std::string sum;
  for (size_t d = 0; d < strides.size(); ++d) {
    if (d == without || strides[d] == 0) continue;
    sum += fmt::format("{}i{} * {}", sum.empty() ? "" : " + ", d, strides[d]);
  }
  return sum.empty() ? "0" : sum;
}

void write_gather_elements(const Call& call, std::string&) {
  Writer& w = call.writer;
  const size_t axis = axis_of(call, 0);
  const Dims dims = call.dims(1), data = call.dims(0);
  if (product(dims, 0, dims.size()) == 0) return;
  const Dims strides = contiguous_strides(data), places = contiguous_strides(dims);
  const std::string x = call.in(0), indices = call.in(1), y = call.out();
  open_loops(w, dims);
  write_index(w, "at", fmt::format("{}[{}]", indices, position(places)), data[axis]);
  w.text().line("{}[{}] = {}[{} + at * {}];", y, position(places), x, position(strides, axis), strides[axis]);
  close_loops(w, dims);
}

void write_scatter_elements(const Call& call, std::string&) {
  Writer& w = call.writer;
  const size_t axis = axis_of(call, 0);
  const Dims dims = call.dims(1), data = call.dims(0);
  const ElementType type = call.type(0);
  const auto bytes = static_cast<size_t>(product(data, 0, data.size())) * byte_width(type);
  if (bytes == 0) return;
  const std::string x = call.in(0), indices = call.in(1), updates = call.in(2), y = call.out();
  w.text().line("{}", w.copy(y, x, bytes));
  if (product(dims, 0, dims.size()) == 0) return;
  const Dims strides = contiguous_strides(data), places = contiguous_strides(dims);
  open_loops(w, dims);
  write_index(w, "at", fmt::format("{}[{}]", indices, position(places)), data[axis]);
  w.text().line("{} *const to = {} + {} + at * {};", stored(type), y, position(strides, axis), strides[axis]);
  w.text().line("*to = {};", combined(w, call.node.attributes.get_string("reduction", "none"), type, "*to",
                                      fmt::format("{}[{}]", updates, position(places))));
  close_loops(w, dims);
}

void write_gather_nd(const Call& call, std::string&) {
  Writer& w = call.writer;
  const Dims data = call.dims(0), indices = call.dims(1);
  const auto batch = static_cast<size_t>(call.node.attributes.get_int("batch_dims", 0));
  const auto depth = static_cast<size_t>(indices.back());
  const int64_t batches = product(indices, 0, batch), tuples = product(indices, batch, indices.size() - 1);
  const int64_t slice = product(data, batch + depth, data.size()), whole = product(data, batch, data.size());
  if (batches * tuples * slice == 0) return;
  const Dims strides = contiguous_strides(data);
  const std::string x = call.in(0), index = call.in(1), y = call.out();
  Text& text = w.text();
  text.open("for (ptrdiff_t b = 0; b < {}; ++b)", batches);
  text.open("for (ptrdiff_t k = 0; k < {}; ++k)", tuples);
  text.line("ptrdiff_t from = b * {};", whole);
  for (size_t d = 0; d < depth; ++d) {
    text.open("");
    write_index(w, "at", fmt::format("{}[(b * {} + k) * {} + {}]", index, tuples, depth, d), data[batch + d]);
    text.line("from += at * {};", strides[batch + d]);
    text.close();
  }
  text.line("{}", w.copy(fmt::format("{} + (b * {} + k) * {}", y, tuples, slice), fmt::format("{} + from", x),
                         static_cast<size_t>(slice) * byte_width(call.type(0))));
  text.close();
  text.close();
}

void write_scatter_nd(const Call& call, std::string&) {
  Writer& w = call.writer;
  const Dims data = call.dims(0), indices = call.dims(1);
  const ElementType type = call.type(0);
  const auto depth = static_cast<size_t>(indices.back());
  const int64_t tuples = product(indices, 0, indices.size() - 1), slice = product(data, depth, data.size());
  const auto bytes = static_cast<size_t>(product(data, 0, data.size())) * byte_width(type);
  if (bytes == 0) return;
  const Dims strides = contiguous_strides(data);
  const std::string x = call.in(0), index = call.in(1), updates = call.in(2), y = call.out();
  const std::string_view how = call.node.attributes.get_string("reduction", "none");
  Text& text = w.text();
  text.line("{}", w.copy(y, x, bytes));
  if (tuples * slice == 0) return;
  text.open("for (ptrdiff_t k = 0; k < {}; ++k)", tuples);
  text.line("ptrdiff_t to = 0;");
  for (size_t d = 0; d < depth; ++d) {
    text.open("");
    write_index(w, "at", fmt::format("{}[k * {} + {}]", index, depth, d), data[d]);
    text.line("to += at * {};", strides[d]);
    text.close();
  }
  if (how == "none") {
    text.line("{}", w.copy(fmt::format("{} + to", y), fmt::format("{} + k * {}", updates, slice),
                           static_cast<size_t>(slice) * byte_width(type)));
  } else {
    text.line("for (ptrdiff_t i = 0; i < {}; ++i) {}[to + i] = {};", slice, y,
              combined(w, how, type, fmt::format("{}[to + i]", y), fmt::format("{}[k * {} + i]", updates, slice)));
  }
  text.close();
}

void write_tensor_scatter(const Call& call, std::string&) {
  Writer& w = call.writer;
  const Dims cache = call.dims(0);
  const size_t axis = axis_of(call, -2);
  const ElementType type = call.type(0);
  const bool circular = call.node.attributes.get_string("mode", "linear") == "circular";
  const int64_t outer = product(cache, 1, axis), slice = product(cache, axis + 1, cache.size()), size = cache[axis],
                rows = call.dims(1)[axis];
  const auto bytes = static_cast<size_t>(product(cache, 0, cache.size())) * byte_width(type);
  if (bytes == 0) return;
  const std::string x = call.in(0), updates = call.in(1), y = call.out();
  Text& text = w.text();
  text.line("{}", w.copy(y, x, bytes));
  text.open("for (ptrdiff_t b = 0; b < {}; ++b)", cache[0]);
  if (call.has_input(2)) {
    text.line("const int64_t start = {}[b];", call.in(2));
    text.line("if (start < 0 || start > {}) return {};", circular ? size - 1 : size - rows, w.error("INVALID_VALUE"));
  } else {
    text.line("const int64_t start = 0;");
  }
  text.open("for (ptrdiff_t o = 0; o < {}; ++o)", outer);
  text.open("for (ptrdiff_t r = 0; r < {}; ++r)", rows);
  text.line("const ptrdiff_t at = (ptrdiff_t)((start + r) % {});", size);
  text.line("{}", w.copy(fmt::format("{} + ((b * {} + o) * {} + at) * {}", y, outer, size, slice),
                         fmt::format("{} + ((b * {} + o) * {} + r) * {}", updates, outer, rows, slice),
                         static_cast<size_t>(slice) * byte_width(type)));
  text.close();
  text.close();
  text.close();
}

// The positions of the k first elements of a row, in order, by insertion; of equal ones the lower position comes first.
std::string top_function(Writer& w, ElementType type, bool largest) {
  const ElementType wide = wide_type(type);
  const std::string name = fmt::format("top_{}_{}", largest ? "largest" : "smallest", suffix(type));
  const std::string widen = w.functions().convert(type, wide);
  return w.functions().get(name, [&](Text& text, const std::string& full) {
    const auto load = [&](const char* i) {
      const std::string x = fmt::format("x[{} * stride]", i);
      return widen.empty() ? x : fmt::format("{}({})", widen, x);
    };
    const auto beats = [&](const char* a, const char* b) {
      std::string more = fmt::format("{} {} {}", a, largest ? ">" : "<", b);
      if (!is_float(wide)) return more;
      // A NaN counts as larger than any number.
      return largest ? fmt::format("{0} || ({1} != {1} && {2} == {2})", more, a, b)
                     : fmt::format("{0} || ({2} != {2} && {1} == {1})", more, a, b);
    };
    text.open("static void {}(const {} *x, ptrdiff_t stride, ptrdiff_t n, int64_t *found, ptrdiff_t k)", full,
              stored(type));
    text.line("ptrdiff_t held = 0;");
    text.open("for (ptrdiff_t i = 0; i < n; ++i)");
    text.line("const {} a = {};", stored(wide), load("i"));
    text.line("ptrdiff_t at = held;");
    text.open("while (at > 0)");
    text.line("const {} b = {};", stored(wide), load("(ptrdiff_t)found[at - 1]"));
    text.line("if (!({})) break;", beats("a", "b"));
    text.line("if (at < k) found[at] = found[at - 1];");
    text.line("--at;");
    text.close();
    text.line("if (at < k) found[at] = i;");
    text.line("if (held < k) ++held;");
    text.close();
    text.close();
  });
}

void write_top_k(const Call& call, std::string&) {
  Writer& w = call.writer;
  const Dims dims = call.dims(0);
  const size_t axis = axis_of(call, -1);
  const ElementType type = call.type(0);
  const bool largest = call.node.attributes.get_int("largest", 1) != 0;
  const Dims out = call.has_output(0) ? call.result_dims(0) : call.result_dims(1);
  const int64_t n = dims[axis], k = out[axis], outer = product(dims, 0, axis),
                inner = product(dims, axis + 1, dims.size());
  if (k * outer * inner == 0) return;
  const std::string top = top_function(w, type, largest), x = call.in(0);
  const std::string found = fmt::format("((int64_t *)(void *){})", w.scratch(static_cast<size_t>(k) * sizeof(int64_t)));
  Text& text = w.text();
  text.open("for (ptrdiff_t o = 0; o < {}; ++o)", outer);
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", inner);
  text.line("const {} *const row = {} + o * {} + i;", stored(type), x, n * inner);
  text.line("int64_t *const found = {};", found);
  text.line("{}(row, {}, {}, found, {});", top, inner, n, k);
  text.open("for (ptrdiff_t j = 0; j < {}; ++j)", k);
  const std::string to = fmt::format("(o * {} + j) * {} + i", k, inner);
  if (call.has_output(0)) text.line("{}[{}] = row[found[j] * {}];", call.out(0), to, inner);
  if (call.has_output(1)) text.line("{}[{}] = found[j];", call.out(1), to);
  text.close();
  text.close();
  text.close();
}

void write_cumulative(const Call& call, std::string& why) {
  Writer& w = call.writer;
  const Dims dims = call.dims(0);
  const Tensor* axes = call.constant(1);
  if (!axes) {
    why = "its axis is known only when it runs";
    return;
  }
  int64_t axis = axes->type() == ElementType::kInt64 ? *axes->data<int64_t>() : *axes->data<int32_t>();
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  const auto at = static_cast<size_t>(axis);
  const ElementType type = call.type(0), wide = wide_type(type);
  const bool exclusive = call.node.attributes.get_int("exclusive") != 0;
  const bool reverse = call.node.attributes.get_int("reverse") != 0;
  const bool products = call.node.op->name == "CumProd";
  const int64_t n = dims[at], outer = product(dims, 0, at), inner = product(dims, at + 1, dims.size());
  if (n * outer * inner == 0) return;
  const std::string x = call.in(0), y = call.out();
  const std::string step = w.functions().operation(products ? ElementwiseOp::kMul : ElementwiseOp::kAdd, wide);
  Text& text = w.text();
  text.open("for (ptrdiff_t o = 0; o < {}; ++o)", outer);
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", inner);
  text.line("{} sum = {};", stored(wide), products ? "1" : "0");
  text.open("for (ptrdiff_t j = 0; j < {}; ++j)", n);
  text.line("const ptrdiff_t at = (o * {0} + {1}) * {2} + i;", n, reverse ? fmt::format("({} - j)", n - 1) : "j",
            inner);
  text.line("const {} a = {};", stored(wide), w.converted(type, wide, fmt::format("{}[at]", x)));
  if (exclusive) text.line("{}[at] = {};", y, w.converted(wide, type, "sum"));
  text.line("sum = j == 0 ? a : {}(sum, a);", step);
  if (!exclusive) text.line("{}[at] = {};", y, w.converted(wide, type, "sum"));
  text.close();
  text.close();
  text.close();
}

void write_clip(const Call& call, std::string&) {
  Writer& w = call.writer;
  const ElementType type = call.type(0), wide = wide_type(type);
  const int64_t n = product(call.dims(0), 0, call.dims(0).size());
  if (n == 0) return;
  const std::string x = call.in(0), y = call.out();
  std::string bounds[2];
  Text& text = w.text();
  text.open("");
  for (const size_t i : {1, 2}) {
    const char* name = i == 1 ? "low" : "high";
    const ir::Attribute* attribute = call.node.attributes.find(i == 1 ? "min" : "max");
    if (call.has_input(i)) {
      text.line("const {} {} = {};", stored(wide), name, w.converted(type, wide, call.in(i) + "[0]"));
    } else if (attribute) {
      const float bound = attribute->as_float();
      text.line("const {} {} = {};", stored(wide), name,
                type == ElementType::kFloat
                    ? literal(bound)
                    : w.converted(type, wide, w.converted(ElementType::kFloat, type, literal(bound))));
    } else if (const double limit = clip_bound_left_out(type); limit != 0 && call.node.version->since >= 11) {
      const double bound = i == 1 ? -limit : limit;
      text.line("const {} {} = {};", stored(wide), name,
                wide == ElementType::kDouble ? literal(bound) : literal(static_cast<float>(bound)));
    } else {
      continue;
    }
    bounds[i - 1] = name;
  }
  text.line("{}_INDEPENDENT", w.functions().upper_prefix());
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", n);
  text.line("{} a = {};", stored(wide), w.converted(type, wide, x + "[i]"));
  if (!bounds[0].empty()) text.line("a = a < low ? low : a;");
  if (!bounds[1].empty()) text.line("a = a > high ? high : a;");
  text.line("{}[i] = {};", y, w.converted(wide, type, "a"));
  text.close();
  text.close();
}

// Conversions of elements that steps of elementwise code do not hold (plan::is_native).
void write_cast(const Call& call, std::string&) {
  Writer& w = call.writer;
  const ElementType from = call.type(0), to = call.result();
  const int64_t n = product(call.dims(0), 0, call.dims(0).size());
  const std::string x = call.in(0), y = call.out();
  w.text().line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {};", n, y,
                w.converted(from, to, x + "[i]", cast_options(call.node.attributes)));
}

// Output 0 has the bytes of an input.
void write_bytes(const Call& call, size_t input) {
  const Dims dims = call.dims(input);
  const size_t bytes = static_cast<size_t>(product(dims, 0, dims.size())) * byte_width(call.type(input));
  if (bytes > 0) call.writer.text().line("{}", call.writer.copy(call.out(), call.in(input), bytes));
}

void write_copy(const Call& call, std::string&) {
  write_bytes(call, static_cast<size_t>(std::max(call.node.op->alias_input, 0)));
}

// The axes that are not moved keep their order.
void write_move_axis(const Call& call, std::string& why) {
  const Dims dims = call.dims(0), strides = contiguous_strides(dims);
  const auto rank = static_cast<int64_t>(dims.size());
  const auto place = [&](const char* name) {
    const int64_t axis = call.node.attributes.get_int(name);
    return static_cast<size_t>(axis < 0 ? axis + rank : axis);
  };
  plan::MoveCode code;
  code.type = call.type(0);
  plan::MoveCode::Region& all = code.regions.emplace_back();
  all.from = call.input_slot(0);
  all.to = call.output_slot(0);
  all.dims = call.result_dims();
  all.out_strides = contiguous_strides(all.dims);
  all.in_strides = strides;
  all.in_strides.erase(place("from"));
  all.in_strides.insert(place("to"), strides[place("from")]);
  write_moves(call.writer, code, why);
}

constexpr OperatorRow kRows[] = {
    {"GatherElements", "", write_gather_elements},
    {"ScatterElements", "", write_scatter_elements},
    {"Scatter", "", write_scatter_elements},
    {"GatherND", "", write_gather_nd},
    {"ScatterND", "", write_scatter_nd},
    {"TensorScatter", "", write_tensor_scatter},
    {"TopK", "", write_top_k},
    {"CumSum", "", write_cumulative},
    {"CumProd", "", write_cumulative},
    {"Cast", "", write_cast},
    {"CastLike", "", write_cast},
    {"Clip", "", write_clip},
    {"BitCast", "", write_copy},
    {"MoveAxis", "treadle", write_move_axis},
};

}  // namespace

std::span<const OperatorRow> tensor_operators() {
  return kRows;
}

OperatorFn copy_operator() {
  return write_copy;
}

}  // namespace treadle::c
