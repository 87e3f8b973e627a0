// Operators that fill, mark or turn over elements: ConstantOfShape, EyeLike, OneHot (ops/tensor/generate.cc), Trilu,
// ReverseSequence (ops/tensor/trilu.cc).

#include <algorithm>

#include "c/writer.h"
#include "op/op_def.h"

namespace treadle::c {

namespace {

int64_t count_of(const Dims& dims) {
  return product(dims, 0, dims.size());
}

void write_constant_of_shape(const Call& call, std::string&) {
  const int64_t n = count_of(call.result_dims());
  if (n == 0) return;
  const ir::Attribute* value = call.node.attributes.find("value");
  const std::string element = value ? literal(call.result(), value->as_tensor().raw()) : "0";
  call.writer.text().line("for (ptrdiff_t i = 0; i < {}; ++i) {}[i] = {};", n, call.out(), element);
}

void write_eye_like(const Call& call, std::string&) {
  const Dims dims = call.result_dims();
  const int64_t rows = dims[0], columns = dims[1];
  if (rows * columns == 0) return;
  const int64_t k = std::clamp(call.node.attributes.get_int("k", 0), -rows, columns);
  Writer& w = call.writer;
  w.text().line("for (ptrdiff_t i = 0; i < {0}; ++i) {1}[i] = i % {2} == i / {2} + {3} ? {4} : 0;", rows * columns,
                call.out(), columns, k, w.converted(ElementType::kFloat, call.result(), "1.0f"));
}

void write_one_hot(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims out = call.result_dims();
  const auto rank = static_cast<int64_t>(out.size());
  int64_t axis = call.node.attributes.get_int("axis", -1);
  if (axis < 0) axis += rank;
  const auto at = static_cast<size_t>(axis);
  const int64_t depth = out[at], outer = product(out, 0, at), inner = product(out, at + 1, out.size());
  if (outer * depth * inner == 0) return;
  const std::string index = w.converted(call.type(0), ElementType::kInt64, call.in(0) + "[i]");
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", outer * inner);
  text.line("int64_t at = {};", index);
  text.line("if (at < 0) at = (int64_t)((uint64_t)at + {});", depth);
  text.line("for (ptrdiff_t k = 0; k < {}; ++k) {}[(i / {} * {} + k) * {} + i % {}] = {}[k == at];", depth, call.out(),
            inner, depth, inner, inner, call.in(2));
  text.close();
}

void write_trilu(const Call& call, std::string& why) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims dims = call.dims(0);
  const int64_t rows = dims[dims.size() - 2], columns = dims.back(), n = count_of(dims);
  if (n == 0) return;
  const bool upper = call.node.attributes.get_int("upper", 1) != 0;
  int64_t diagonal = 0;
  if (call.has_input(1)) {
    const Tensor* k = call.constant(1);
    if (!k) {
      why = "its diagonal is known only when it runs";
      return;
    }
    diagonal = std::clamp(*k->data<int64_t>(), -rows - 1, columns + 1);
  }
  text.line("for (ptrdiff_t i = 0; i < {0}; ++i) {1}[i] = i % {2} {3} i / {2} % {4} + {5} ? {6}[i] : 0;", n, call.out(),
            columns, upper ? ">=" : "<=", rows, diagonal, call.in(0));
}

void write_reverse_sequence(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims dims = call.dims(0);
  if (count_of(dims) == 0) return;
  const auto batch = static_cast<size_t>(call.node.attributes.get_int("batch_axis", 1)), time = 1 - batch;
  const Dims strides = contiguous_strides(dims);
  const auto bytes = static_cast<size_t>(product(dims, 2, dims.size())) * byte_width(call.type(0));
  text.open("for (ptrdiff_t b = 0; b < {}; ++b)", dims[batch]);
  text.line("const int64_t count = {}[b];", call.in(1));
  text.line("if (count < 0 || count > {}) return {};", dims[time], w.error("INVALID_VALUE"));
  text.open("for (ptrdiff_t t = 0; t < {}; ++t)", dims[time]);
  text.line("const ptrdiff_t from = t < count ? (ptrdiff_t)count - 1 - t : t;");
  text.line("{}", w.copy(fmt::format("{} + b * {} + t * {}", call.out(), strides[batch], strides[time]),
                         fmt::format("{} + b * {} + from * {}", call.in(0), strides[batch], strides[time]), bytes));
  text.close();
  text.close();
}

constexpr OperatorRow kRows[] = {
    {"ConstantOfShape", "", write_constant_of_shape},
    {"EyeLike", "", write_eye_like},
    {"OneHot", "", write_one_hot},
    {"Trilu", "", write_trilu},
    {"ReverseSequence", "", write_reverse_sequence},
};

}  // namespace

std::span<const OperatorRow> generate_operators() {
  return kRows;
}

}  // namespace treadle::c
