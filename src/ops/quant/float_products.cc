// Products of bytes with float results, from onnxruntime's optimisers: MatMulIntegerToFloat and DynamicQuantizeMatMul.
#include <array>

#include "op/infer_as.h"
#include "op/op_def.h"
#include "op/work.h"

namespace treadle::quant {

namespace {

using ir::Value;

Status infer_product(InferContext& ctx, ElementType type) {
  TREADLE_TRY(infer_as(ctx, "MatMulInteger", {0, 1}));
  Type product = ctx.outputs[0];
  product.element = type;
  ctx.set_output(0, std::move(product));
  return {};
}

Value* or_null(LowerContext& ctx, size_t i) {
  return ctx.has_input(i) ? ctx.input(i) : nullptr;
}

Value* as_float(LowerContext& ctx, size_t i) {
  if (!ctx.has_input(i) || ctx.type(i).element == ElementType::kFloat) return or_null(ctx, i);
  return ctx.call("Cast", {ctx.input(i)}, {ir::Attribute::of("to", static_cast<int64_t>(ElementType::kFloat))});
}

struct Factors {
  Value *a, *b, *a_zero, *b_zero, *a_scale, *b_scale, *bias;
};

Value* product(LowerContext& ctx, const Factors& p) {
  return ctx.call("ScaledMatMulInteger", {p.a, p.b, p.a_zero, p.b_zero, p.a_scale, p.b_scale, p.bias}, {}, "treadle");
}

Status infer_to_float(InferContext& ctx) {
  return infer_product(ctx, ctx.element(2));
}

Status lower_to_float(LowerContext& ctx) {
  Value* y = product(ctx, {ctx.input(0), ctx.input(1), or_null(ctx, 4), or_null(ctx, 5), as_float(ctx, 2),
                           as_float(ctx, 3), as_float(ctx, 6)});
  const ElementType type = ctx.type(2).element;
  if (type != ElementType::kFloat) {
    y = ctx.call("Cast", {y}, {ir::Attribute::of("to", static_cast<int64_t>(type))});
  }
  ctx.set_output(0, y);
  return {};
}

Status infer_dynamic(InferContext& ctx) {
  return infer_product(ctx, ElementType::kFloat);
}

Status lower_dynamic(LowerContext& ctx) {
  const ir::Node* a = ctx.node("DynamicQuantizeLinear", std::array{ctx.input(0)}, 3);
  ctx.set_output(0, product(ctx, {a->outputs[0], ctx.input(1), a->outputs[2], or_null(ctx, 3), a->outputs[1],
                                  ctx.input(2), or_null(ctx, 4)}));
  return {};
}

}  // namespace

}  // namespace treadle::quant

TREADLE_OP(MatMulIntegerToFloat, "com.microsoft") {
  op.since(1)
      .in("A", "T1")
      .in("B", "T2")
      .in("a_scale", "T3")
      .in("b_scale", "T3")
      .in("a_zero_point", "T1", Arity::kOptional)
      .in("b_zero_point", "T2", Arity::kOptional)
      .in("bias", "T3", Arity::kOptional)
      .out("Y", "T3")
      .type("T1", types::kBytes)
      .type("T2", types::kBytes)
      .type("T3", tensors(ElementType::kFloat, ElementType::kFloat16));
  op.infer(quant::infer_to_float)
      .lower(quant::lower_to_float)
      .product(Product::kMatrices)
      .work(work::matrix_product<0>)
      .no_axes("its operands lie between scales");
}

TREADLE_OP(DynamicQuantizeMatMul, "com.microsoft") {
  op.since(1)
      .in("A", "T1")
      .in("B", "T2")
      .in("b_scale", "T1")
      .in("b_zero_point", "T2", Arity::kOptional)
      .in("bias", "T1", Arity::kOptional)
      .out("Y", "T1")
      .type("T1", types::kFloat32s)
      .type("T2", types::kBytes);
  op.infer(quant::infer_dynamic)
      .lower(quant::lower_dynamic)
      .product(Product::kMatrices)
      .work(work::matrix_product<0>)
      .no_axes("one scale is that of all elements");
}
