// Arithmetic on two operands.

#include "op/axis_rules.h"
#include "op/elementwise_records.h"
#include "op/small_contents.h"
#include "type/dim_fractions.h"

namespace treadle {

namespace {

Dim add(const Dim& a, const Dim& b) {
  return a + b;
}
Dim subtract(const Dim& a, const Dim& b) {
  return a - b;
}
Dim multiply(const Dim& a, const Dim& b) {
  return a * b;
}

bool at_least(const Dim& d, int64_t bound) {
  const std::optional<int64_t> low = d.lower_bound();
  return low && *low >= bound;
}

// Div truncates and Dim's division floors: the same unless the signs differ.
Dim divide(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known() && b.value() != 0 && b.value() != -1) return a.value() / b.value();
  return at_least(a, 0) && at_least(b, 1) ? floor_div(a, b) : Dim::unknown();
}

Dim modulo(const Dim& a, const Dim& b) {
  return at_least(a, 0) && at_least(b, 1) ? mod(a, b) : Dim::unknown();
}

Status infer_mod(InferContext& ctx) {
  const int64_t fmod = ctx.attributes().get_int("fmod");
  if (fmod != 0 && fmod != 1) return error(Code::kInvalidModel, "attribute fmod is {}, expected 0 or 1", fmod);
  if (fmod == 0 && ctx.version() < 28 && is_float(ctx.element(0))) {
    return error(Code::kInvalidModel, "attribute fmod is 0, expected 1 for elements of type {}", name(ctx.element(0)));
  }
  return infer_arithmetic<modulo>(ctx);
}

Status prepare_mod(PrepareContext& ctx) {
  const bool fmod = ctx.attributes().get_int("fmod") != 0;
  return prepare_elementwise(ctx, fmod ? kernels::ElementwiseOp::kFmod : kernels::ElementwiseOp::kMod);
}

// The slope broadcasts to x, never x to the slope. Before opset 7 a vector of slopes belongs to x's channels (axis 1).
int64_t slope_axis(int version, int64_t x_rank, int64_t slope_rank) {
  return version < 7 && slope_rank == 1 && x_rank >= 2 ? 1 : x_rank - slope_rank;
}

Status infer_prelu(InferContext& ctx) {
  TREADLE_TRY(infer_like_input(ctx));
  const Shape* x = ctx.shape(0);
  const Shape* slope = ctx.shape(1);
  if (!x || !slope) return {};
  const auto x_rank = static_cast<int64_t>(x->size()), slope_rank = static_cast<int64_t>(slope->size());
  const int64_t axis = slope_axis(ctx.version(), x_rank, slope_rank);
  bool fits = axis >= 0;
  for (int64_t i = 0; fits && i < slope_rank; ++i) {
    const Dim& d = (*x)[static_cast<size_t>(axis + i)];
    const Dim& s = (*slope)[static_cast<size_t>(i)];
    fits = !s.is_known() || s.is_known(1) || !d.is_known() || s.value() == d.value();
  }
  if (fits) return {};
  return error(Code::kInvalidArgument, "slope has shape {}, expected one that broadcasts to X, {}", to_string(*slope),
               to_string(*x));
}

Status prepare_prelu(PrepareContext& ctx) {
  return prepare_elementwise(ctx, kernels::ElementwiseOp::kPRelu, {},
                             slope_axis(ctx.version(), ctx.inputs[0].rank(), ctx.inputs[1].rank()));
}

// Versions before 7 have a vector of slopes for the channels.
Status slope_axes(AxisContext& c) {
  if (!c.runs_along(0)) return looks_along("its slopes alone run along it");
  const bool by_channel = c.version() < 7 && c.rank(1) == 1 && !c.size(1, 0).is_known(1);
  if (by_channel && c.in(0) == 1) return looks_along("its slopes run along it");
  return by_channel ? axes::element_by_element(c) : axes::broadcast(c);
}

template <class T>
bool has_zero(const Tensor& t) {
  const T* values = t.data<T>();
  return std::find(values, values + t.element_count(), T{0}) != values + t.element_count();
}

bool has_integer_zero(const Tensor& t) {
  switch (t.type()) {
    case ElementType::kInt8:
      return has_zero<int8_t>(t);
    case ElementType::kInt16:
      return has_zero<int16_t>(t);
    case ElementType::kInt32:
      return has_zero<int32_t>(t);
    case ElementType::kInt64:
      return has_zero<int64_t>(t);
    case ElementType::kUint8:
      return has_zero<uint8_t>(t);
    case ElementType::kUint16:
      return has_zero<uint16_t>(t);
    case ElementType::kUint32:
      return has_zero<uint32_t>(t);
    case ElementType::kUint64:
      return has_zero<uint64_t>(t);
    default:
      return true;
  }
}

// Larger constants are not searched.
constexpr int64_t kMaxDivisors = 4096;

bool divides_by_constants(const ir::Node& node) {
  if (node.inputs.size() < 2) return false;
  const ir::Value* divisor = node.inputs[1];
  return divisor && divisor->is_constant() && divisor->constant.element_count() <= kMaxDivisors &&
         !has_integer_zero(divisor->constant);
}

void versions_of_arithmetic(OpBuilder& op) {
  op.since(1)
      .in("A", "T")
      .in("B", "T")
      .out("C", "T")
      .optional("axis", ir::AttributeKind::kInt)
      .attr("broadcast", 0)
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs").type("T", types::kNumeric32);
  op.since(7).drop_attr("axis").drop_attr("broadcast");
  op.since(13).type("T", types::kNumeric32Bf16);
  op.since(14).type("T", types::kNumericBf16);
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Add, "") {
  versions_of_arithmetic(op);
  binary<kernels::ElementwiseOp::kAdd>(op, infer_size_arithmetic<add, add>);
}

TREADLE_OP(Div, "") {
  versions_of_arithmetic(op);
  binary<kernels::ElementwiseOp::kDiv>(op, infer_size_arithmetic<divide, real_quotient>)
      .can_fail(types::kIntegers)
      .can_fail_unless(divides_by_constants);
}

TREADLE_OP(Mod, "") {
  op.since(10).in("A", "T").in("B", "T").out("C", "T").attr("fmod", 0).type("T", types::kNumeric);
  op.since(13).type("T", types::kNumericBf16);
  op.since(28);
  binary(op, prepare_mod, infer_mod).can_fail(types::kIntegers).can_fail_unless(divides_by_constants);
}

TREADLE_OP(Mul, "") {
  versions_of_arithmetic(op);
  binary<kernels::ElementwiseOp::kMul>(op, infer_size_arithmetic<multiply, multiply>);
}

TREADLE_OP(PRelu, "") {
  op.since(1)
      .in("X", "T")
      .in("slope", "T")
      .out("Y", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(7);
  op.since(9).type("T", types::kNumeric32);
  op.since(16).type("T", types::kNumeric32Bf16);
  binary(op, prepare_prelu, infer_prelu).axes(slope_axes, axes::aligned);
}

TREADLE_OP(Sub, "") {
  versions_of_arithmetic(op);
  binary<kernels::ElementwiseOp::kSub>(op, infer_size_arithmetic<subtract, subtract>);
}
