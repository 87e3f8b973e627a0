// Powers whose base and exponent have different types (ops/math/pow.cc).

#include "c/writer.h"
#include "op/op_def.h"

namespace treadle::c {

namespace {

using kernels::ElementwiseOp;

// The element of an input that element (i0, i1, ...) of the result reads.
std::string broadcast_index(const Dims& dims, const Dims& result) {
  std::string sum;
  const size_t missing = result.size() - dims.size();
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) {
    if (dims[d] != 1) sum += fmt::format("{}i{} * {}", sum.empty() ? "" : " + ", d + missing, stride);
  }
  return sum.empty() ? "0" : sum;
}

// Only reached if the types differ: other powers are elementwise code.
void write_pow(const Call& call, std::string& why) {
  Writer& w = call.writer;
  Text& text = w.text();
  const ElementType base = call.type(0), exponent = call.type(1);
  const ElementType compute = is_integer(base) && is_float(exponent) ? ElementType::kDouble : wide_type(base);
  const std::string power = w.functions().operation(ElementwiseOp::kPow, compute);
  if (power.empty()) why = "powers of floats have no formula in C, only the C library has one (libm allows it)";
  const Dims out = call.result_dims();
  if (!why.empty() || product(out, 0, out.size()) == 0) return;
  for (size_t d = 0; d < out.size(); ++d) text.open("for (ptrdiff_t i{0} = 0; i{0} < {1}; ++i{0})", d, out[d]);
  const auto read = [&](size_t input) {
    const ElementType type = call.type(input);
    const std::string x = fmt::format("{}[{}]", call.in(input), broadcast_index(call.dims(input), out));
    // Floats of 16 bits and bytes become wide first, as kernels convert them.
    return w.converted(wide_type(type), compute, w.converted(type, wide_type(type), x));
  };
  text.line("{}[{}] = {};", call.out(), broadcast_index(out, out),
            w.converted(compute, base, fmt::format("{}({}, {})", power, read(0), read(1))));
  for (size_t d = 0; d < out.size(); ++d) text.close();
}

constexpr OperatorRow kRows[] = {{"Pow", "", write_pow}};

}  // namespace

std::span<const OperatorRow> power_operators() {
  return kRows;
}

}  // namespace treadle::c
