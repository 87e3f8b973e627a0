// Operators of com.microsoft with integer results, and QGemm, a product of bytes with an integer bias. Each is lowered
// to integer operators.
#include "op/axis_rules.h"
#include "op/infer_as.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/work.h"

namespace treadle::quant {

namespace {

using ir::Attribute;
using ir::Value;

Value* cast(LowerContext& ctx, Value* v, ElementType type) {
  return ctx.call("Cast", {v}, {Attribute::of("to", static_cast<int64_t>(type))});
}

bool is_unsigned(ElementType type) {
  return type == ElementType::kUint8 || type == ElementType::kUint16;
}

void set_element(InferContext& ctx, ElementType type) {
  Type result = ctx.outputs[0];
  result.element = type;
  ctx.set_output(0, std::move(result));
}

// --- MulInteger: (A - A_zero_point) * (B - B_zero_point)

Status infer_mul(InferContext& ctx) {
  TREADLE_TRY(infer_as(ctx, "Mul", {0, 2}));
  set_element(ctx, ElementType::kInt32);
  return {};
}

Value* centred(LowerContext& ctx, size_t i) {
  Value* x = cast(ctx, ctx.input(i), ElementType::kInt32);
  if (!ctx.has_input(i + 1)) return x;
  return ctx.call("Sub", {x, cast(ctx, ctx.input(i + 1), ElementType::kInt32)});
}

Status lower_mul(LowerContext& ctx) {
  ctx.set_output(0, ctx.call("Mul", {centred(ctx, 0), centred(ctx, 2)}));
  return {};
}

// --- ReduceSumInteger, whose sums are signed if the elements are

ElementType sum_type(ElementType element) {
  return is_unsigned(element) ? ElementType::kUint32 : ElementType::kInt32;
}

Status infer_sum(InferContext& ctx) {
  TREADLE_TRY(infer_as(ctx, "ReduceSum", {0}));
  set_element(ctx, sum_type(ctx.element(0)));
  return {};
}

Status lower_sum(LowerContext& ctx) {
  Value* axes = ctx.constant(Tensor::of_int64(ctx.attributes().get_ints("axes")));
  ctx.set_output(0, ctx.call("ReduceSum", {cast(ctx, ctx.input(0), sum_type(ctx.type(0).element)), axes},
                             {Attribute::of("keepdims", ctx.attributes().get_int("keepdims", 1))}));
  return {};
}

// --- MatMulInteger16, whose sums are signed if an operand is, and wrap around

ElementType product_type(ElementType a, ElementType b) {
  return is_unsigned(a) && is_unsigned(b) ? ElementType::kUint32 : ElementType::kInt32;
}

Status infer_product(InferContext& ctx) {
  TREADLE_TRY(infer_as(ctx, "MatMul", {0, 1}));
  set_element(ctx, product_type(ctx.element(0), ctx.element(1)));
  return {};
}

Status lower_product(LowerContext& ctx) {
  const ElementType type = product_type(ctx.type(0).element, ctx.type(1).element);
  ctx.set_output(0, ctx.call("MatMul", {cast(ctx, ctx.input(0), type), cast(ctx, ctx.input(1), type)}));
  return {};
}

// --- QGemm: alpha * a_scale * b_scale * (sums + C), quantised if there is a zero point

enum GemmInput : size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kC, kYScale, kYZero };

Status infer_gemm(InferContext& ctx) {
  if (ctx.has_input(kYZero) && !ctx.has_input(kYScale)) {
    return error(Code::kInvalidModel, "y_scale is left out, expected it beside y_zero_point");
  }
  TREADLE_TRY(infer_as(ctx, "Gemm", {kA, kB, kC}));
  const Shape* result = ctx.outputs[0].has_shape ? &ctx.outputs[0].shape : nullptr;
  for (const size_t i : {kBScale, kBZero}) {
    const Shape* given = ctx.shape(i);
    if (!given || !result || !element_count(*given).is_known() || element_count(*given).is_known(1)) continue;
    if (given->size() == 1 && !differ((*given)[0], result->back())) continue;
    return error(Code::kInvalidArgument, "{} has shape {}, expected one element or [{}]",
                 ctx.node.version->inputs[i].name, to_string(*given), result->back().to_string());
  }
  set_element(ctx, ctx.has_input(kYZero) ? ctx.element(kYZero) : ElementType::kFloat);
  return {};
}

Value* matrix(LowerContext& ctx, size_t i, const char* turned) {
  Value* x = ctx.input(i);
  return ctx.attributes().get_int(turned) != 0 ? ctx.call("Transpose", {x}) : x;
}

Status lower_gemm(LowerContext& ctx) {
  Value* sums = ctx.call("MatMulInteger",
                         {matrix(ctx, kA, "transA"), matrix(ctx, kB, "transB"), ctx.input(kAZero), ctx.input(kBZero)});
  if (ctx.has_input(kC)) sums = ctx.call("Add", {sums, ctx.input(kC)});
  Value* scale = ctx.call("Mul", {ctx.input(kAScale), ctx.input(kBScale)});
  const float alpha = ctx.attributes().get_float("alpha", 1);
  if (alpha != 1) scale = ctx.call("Mul", {scale, ctx.constant(Tensor::scalar<float>(ElementType::kFloat, alpha))});
  Value* y = ctx.call("Mul", {cast(ctx, sums, ElementType::kFloat), scale});
  if (ctx.has_input(kYZero)) y = ctx.call("QuantizeLinear", {y, ctx.input(kYScale), ctx.input(kYZero)});
  ctx.set_output(0, y);
  return {};
}

constexpr const char* kBetweenScales = "its operands lie between scales";

}  // namespace

}  // namespace treadle::quant

TREADLE_OP(MulInteger, "com.microsoft") {
  op.since(1)
      .in("A", "T")
      .in("A_zero_point", "T", Arity::kOptional)
      .in("B", "T")
      .in("B_zero_point", "T", Arity::kOptional)
      .out("C", "T1")
      .type("T", types::kBytes)
      .type("T1", types::kInt32s);
  op.infer(quant::infer_mul).lower(quant::lower_mul).no_axes("its operands lie between zero points");
}

TREADLE_OP(ReduceSumInteger, "com.microsoft") {
  op.since(1)
      .in("data", "T1")
      .out("reduced", "T2")
      .required("axes", ir::AttributeKind::kInts)
      .required("keepdims", ir::AttributeKind::kInt)
      .type("T1", types::kBytes)
      .type("T2", tensors(ElementType::kInt32, ElementType::kUint32));
  op.infer(quant::infer_sum).lower(quant::lower_sum).no_axes("it adds up along axes that an attribute names");
}

TREADLE_OP(MatMulInteger16, "com.microsoft") {
  op.since(1)
      .in("A", "T1")
      .in("B", "T2")
      .out("Y", "T3")
      .type("T1", tensors(ElementType::kInt16, ElementType::kUint16))
      .type("T2", tensors(ElementType::kInt16, ElementType::kUint16))
      .type("T3", tensors(ElementType::kInt32, ElementType::kUint32));
  op.infer(quant::infer_product)
      .lower(quant::lower_product)
      .product(Product::kMatrices)
      .work(work::matrix_product<0>)
      .no_axes("its rows are those of a product");
}

TREADLE_OP(QGemm, "com.microsoft") {
  op.since(1)
      .in("A", "TA")
      .in("a_scale", "T")
      .in("a_zero_point", "TA")
      .in("B", "TB")
      .in("b_scale", "T")
      .in("b_zero_point", "TB")
      .in("C", "TC", Arity::kOptional)
      .in("y_scale", "T", Arity::kOptional)
      .in("y_zero_point", "TYZ", Arity::kOptional)
      .out("Y", "TY")
      .attr("alpha", 1.0)
      .attr("transA", 0)
      .attr("transB", 0)
      .type("T", types::kFloat32s)
      .type("TA", types::kBytes)
      .type("TB", types::kBytes)
      .type("TC", types::kInt32s)
      .type("TYZ", types::kBytes)
      .type("TY", types::kFloat32s | types::kBytes);
  op.infer(quant::infer_gemm).lower(quant::lower_gemm).no_axes(quant::kBetweenScales);
}
