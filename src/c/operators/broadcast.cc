// Elementwise operators that elementwise code does not cover: powers whose base and exponent have different types
// (ops/math/pow.cc); sums, extremes and means of many operands that are rounded once (ops/math/variadic.cc).

#include "c/writer.h"
#include "op/op_def.h"

namespace treadle::c {

namespace {

using kernels::ElementwiseOp;

// The element of an operand that element (i0, i1, ...) of the result reads.
std::string broadcast_index(const Dims& dims, const Dims& result) {
  std::string sum;
  const size_t missing = result.size() - dims.size();
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) {
    if (dims[d] != 1) sum += fmt::format("{}i{} * {}", sum.empty() ? "" : " + ", d + missing, stride);
  }
  return sum.empty() ? "0" : sum;
}

// Loops over the result around `body`.
template <class Body>
void for_each_element(const Call& call, Body&& body) {
  const Dims out = call.result_dims();
  Text& text = call.writer.text();
  for (size_t d = 0; d < out.size(); ++d) text.open("for (ptrdiff_t i{0} = 0; i{0} < {1}; ++i{0})", d, out[d]);
  text.open("");
  body();
  text.close();
  for (size_t d = 0; d < out.size(); ++d) text.close();
}

// The element of an input, in another type.
std::string element(const Call& call, size_t input, ElementType to) {
  const ElementType type = call.type(input);
  const std::string x = fmt::format("{}[{}]", call.in(input), broadcast_index(call.dims(input), call.result_dims()));
  // Floats of 16 bits and bytes become wide first, as kernels convert them.
  return call.writer.converted(wide_type(type), to, call.writer.converted(type, wide_type(type), x));
}
std::string result(const Call& call) {
  return fmt::format("{}[{}]", call.out(), broadcast_index(call.result_dims(), call.result_dims()));
}

void write_pow(const Call& call, std::string& why) {
  Writer& w = call.writer;
  const ElementType base = call.type(0), exponent = call.type(1);
  const ElementType compute = is_integer(base) && is_float(exponent) ? ElementType::kDouble : wide_type(base);
  const std::string power = w.functions().operation(ElementwiseOp::kPow, compute);
  if (power.empty()) why = "powers of floats have no formula in C, only the C library has one (libm allows it)";
  const Dims out = call.result_dims();
  if (!why.empty() || product(out, 0, out.size()) == 0) return;
  for_each_element(call, [&] {
    const std::string made = fmt::format("{}({}, {})", power, element(call, 0, compute), element(call, 1, compute));
    w.text().line("{} = {};", result(call), w.converted(compute, base, made));
  });
}

// Operands are combined in their order, in a wide type.
template <ElementwiseOp kOp, bool kMean>
void write_many(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims out = call.result_dims();
  if (product(out, 0, out.size()) == 0) return;
  const ElementType type = call.result(), wide = wide_type(type);
  const std::string combine = w.functions().operation(kOp, wide);
  for_each_element(call, [&] {
    text.line("{} a = {};", stored(wide), element(call, 0, wide));
    for (size_t i = 1; i < call.inputs(); ++i) text.line("a = {}(a, {});", combine, element(call, i, wide));
    if (kMean && call.inputs() > 1) text.line("a = a / {};", call.inputs());
    text.line("{} = {};", result(call), w.converted(wide, type, "a"));
  });
}

constexpr OperatorRow kRows[] = {
    {"Pow", "", write_pow},
    {"Sum", "", write_many<ElementwiseOp::kAdd, false>},
    {"Max", "", write_many<ElementwiseOp::kMax, false>},
    {"Min", "", write_many<ElementwiseOp::kMin, false>},
    {"Mean", "", write_many<ElementwiseOp::kAdd, true>},
};

}  // namespace

std::span<const OperatorRow> broadcast_operators() {
  return kRows;
}

}  // namespace treadle::c
