// Matrix products fused by onnxruntime's optimisers with transposes, a factor or an activation.

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/registry.h"
#include "op/work.h"
#include "ops/fused/activation.h"
#include "ops/fused/calls.h"

namespace treadle::fused {

namespace {

// ---- FusedMatMul and its variants

constexpr const char* kTransposed[] = {"transA", "transB"};
constexpr const char* kBatchTransposed[] = {"transBatchA", "transBatchB"};

// The order in which the axes of operand i are read; empty: unchanged. A vector is never transposed. If the batch is
// transposed, axis 0 holds the rows, and the axes behind it the stack.
std::vector<int64_t> order_of_axes(const ir::Attributes& attributes, size_t i, int64_t rank) {
  const bool transposed = attributes.get_int(kTransposed[i], 0) != 0;
  const bool batch = attributes.get_int(kBatchTransposed[i], 0) != 0;
  if (rank < 2 || (!transposed && !(batch && rank > 2))) return {};
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  if (batch) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (transposed) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return order;
}

Shape permuted(const Shape& shape, const std::vector<int64_t>& order) {
  if (order.empty()) return shape;
  Shape result;
  for (const int64_t axis : order) result.push_back(shape[static_cast<size_t>(axis)]);
  return result;
}

// The operands' shapes in the order in which their axes are read.
struct Factors {
  Shape a, b;
};

Status infer_product(InferContext& ctx) {
  const Shape *a = ctx.shape(0), *b = ctx.shape(1);
  if (!a || !b) return ctx.set_output(0, ctx.element(0)), Status();
  const auto seen = [&](size_t i, const Shape& shape) {
    return permuted(shape, order_of_axes(ctx.attributes(), i, static_cast<int64_t>(shape.size())));
  };
  const Factors f{seen(0, *a), seen(1, *b)};
  if (f.a.empty() || f.b.empty()) {
    return error(Code::kInvalidArgument,
                 "A has shape {} and B {}, expected at least one axis each: a scalar is no matrix", to_string(*a),
                 to_string(*b));
  }
  const Dim& rows = f.b[f.b.size() > 1 ? f.b.size() - 2 : 0];
  if (differ(f.a.back(), rows)) {
    const auto& inputs = ctx.node.version->inputs;
    return error(Code::kInvalidArgument,
                 "{0} has shape {1} and {2} {3}, read as {4} and {5}, expected as many columns of {0} as rows of {2}",
                 inputs[0].name, to_string(*a), inputs[1].name, to_string(*b), to_string(f.a), to_string(f.b));
  }
  const auto stack = [](const Shape& s) { return Shape(s.begin(), s.end() - std::min<size_t>(s.size(), 2)); };
  auto both = broadcast(stack(f.a), stack(f.b));
  if (!both.ok()) {
    return error(Code::kInvalidArgument, "A has shape {} and B {}, whose axes before the matrices do not fit: {}",
                 to_string(*a), to_string(*b), std::move(both).status().message());
  }
  Shape out = std::move(both).value();
  if (f.a.size() > 1) out.push_back(f.a[f.a.size() - 2]);
  if (f.b.size() > 1) out.push_back(f.b.back());
  ctx.set_output(0, ctx.element(0), std::move(out));
  return {};
}

Status infer_product_and_activation(InferContext& ctx) {
  TREADLE_TRY(read_activation(ctx.attributes()).check());
  return infer_product(ctx);
}

// A sparse operand is a constant, which import has written out dense.
Status infer_sparse_product(InferContext& ctx) {
  const double alpha = static_cast<double>(ctx.attributes().get_float("alpha"));
  if (!is_float(ctx.element(0)) && alpha != std::trunc(alpha)) {
    return error(Code::kInvalidModel, "attribute alpha is {}, expected an integer for products of integers", alpha);
  }
  if (const Shape* a = ctx.shape(0); a && a->size() != 2) {
    return error(Code::kInvalidArgument, "A has shape {}, expected 2 dimensions", to_string(*a));
  }
  return infer_product(ctx);
}

Result<ir::Value*> product(LowerContext& ctx) {
  std::vector<ir::Attribute> orders;
  for (size_t i = 0; i < 2; ++i) {
    if (!ctx.type(i).has_shape) return error(Code::kNotImplemented, "an operand of unknown rank");
    std::vector<int64_t> order = order_of_axes(ctx.attributes(), i, ctx.type(i).rank());
    if (!order.empty()) orders.push_back(ir::Attribute::of(i == 0 ? "perm_a" : "perm_b", std::move(order)));
  }
  ir::Value* y = orders.empty() ? ctx.call("MatMul", {ctx.input(0), ctx.input(1)})
                                : ctx.call("PermutedMatMul", {ctx.input(0), ctx.input(1)}, orders, "treadle");
  const float alpha = ctx.attributes().get_float("alpha");
  return alpha == 1 ? y : ctx.call("Mul", {y, ctx.number(static_cast<double>(alpha), ctx.type(0).element)});
}

Status lower_product(LowerContext& ctx) {
  TREADLE_ASSIGN(ir::Value * y, product(ctx));
  ctx.set_output(0, y);
  return {};
}

// Softmax is the only activation with an axis.
Status lower_product_and_activation(LowerContext& ctx) {
  TREADLE_ASSIGN(ir::Value * y, product(ctx));
  const Activation activation = read_activation(ctx.attributes());
  if (activation.name == "Softmax") {
    y = ctx.call("Softmax", {y}, {ir::Attribute::of("axis", ctx.attributes().get_int("activation_axis", -1))});
  } else {
    y = activation.apply(ctx, y, ctx.type(0).element);
  }
  ctx.set_output(0, y);
  return {};
}

axes::Matrices matrices(const AxisContext& c, size_t i) {
  const std::vector<int64_t> order = order_of_axes(c.attributes(), i, c.rank(i));
  axes::Matrices m{permuted(c.type(i).shape, order), c.in(i)};
  if (order.empty() || !c.runs_along(i)) return m;
  m.axis = std::find(order.begin(), order.end(), c.in(i)) - order.begin();
  return m;
}

Status product_axes(AxisContext& c) {
  TREADLE_ASSIGN(const int64_t axis, axes::matrix_product(matrices(c, 0), matrices(c, 1)));
  if (c.attributes().get_string("activation") == "Softmax" && axis == c.axis(c.out_rank(), -1, "activation_axis")) {
    return looks_along("its softmax runs along it");
  }
  return c.give(0, axis);
}

Work product_work(const ir::Node& node) {
  const auto rank = node.inputs[0]->type.rank();
  const std::vector<int64_t> order = order_of_axes(node.attributes, 0, rank);
  const int64_t summed = order.empty() ? rank - 1 : order.back();
  return {.flops = 2 * work::elements_of(node.outputs[0]) *
                   work::size_of(node.inputs[0], static_cast<size_t>(rank - summed))};
}

void add_product(VersionBuilder& v) {
  v.in("A", "T")
      .in("B", "T")
      .out("Y", "T")
      .attr("alpha", 1.0)
      .attr("transA", 0)
      .attr("transB", 0)
      .type("T", types::kFloatsBf16);
}

void add_batch_transposition(VersionBuilder& v) {
  v.attr("transBatchA", 0).attr("transBatchB", 0);
}

// ---- FusedGemm, GemmFastGelu

Status infer_gemm(InferContext& ctx) {
  TREADLE_TRY(read_activation(ctx.attributes()).check());
  return require_op("Gemm", "").infer(ctx);
}

Status lower_gemm(LowerContext& ctx) {
  std::vector<ir::Attribute> attributes;
  for (const char* factor : {"alpha", "beta"}) {
    attributes.push_back(ir::Attribute::of(factor, ctx.attributes().get_float(factor)));
  }
  for (const char* transposed : kTransposed) {
    attributes.push_back(ir::Attribute::of(transposed, ctx.attributes().get_int(transposed)));
  }
  ir::Value* y = ctx.call("Gemm", {ctx.input(0), ctx.input(1), optional_input(ctx, 2)}, std::move(attributes));
  ctx.set_output(0, read_activation(ctx.attributes()).apply(ctx, y, ctx.type(0).element));
  return {};
}

// The rule of Gemm, which has all of these attributes.
Status gemm_axes(AxisContext& c) {
  return require_op("Gemm", "").axes(c);
}

Work gemm_work(const ir::Node& node) {
  return require_op("Gemm", "").work(node);
}

Status infer_gemm_gelu(InferContext& ctx) {
  TREADLE_TRY(infer_product(ctx));
  const Shape *w = ctx.shape(1), *bias = ctx.shape(2);
  if (!w || !bias || (bias->size() == 1 && !differ((*bias)[0], w->back()))) return {};
  return error(Code::kInvalidArgument, "bias has shape {}, expected [{}]: the columns of W", to_string(*bias),
               w->back().to_string());
}

Status lower_gemm_gelu(LowerContext& ctx) {
  ir::Value* y = ctx.call("MatMul", {ctx.input(0), ctx.input(1)});
  if (ctx.has_input(2)) y = ctx.call("Add", {y, ctx.input(2)});
  ctx.set_output(0, ctx.call("Gelu", {y}, {ir::Attribute::of("approximate", "tanh")}));
  return {};
}

// Rows of X are independent. Columns of W have a bias each.
Status gemm_gelu_axes(AxisContext& c) {
  if (c.runs_along(1) || c.runs_along(2)) return looks_along("its weights run along it");
  return axes::matrix_product(c, 0, 1);
}

}  // namespace

}  // namespace treadle::fused

TREADLE_OP(FusedMatMul, "com.microsoft") {
  op.since(1).with(fused::add_product).with(fused::add_batch_transposition);
  op.infer(fused::infer_product)
      .lower(fused::lower_product)
      .axes(fused::product_axes)
      .product(Product::kMatrices)
      .work(fused::product_work);
}

TREADLE_OP(TransposeMatMul, "com.microsoft") {
  op.since(1).with(fused::add_product);
  op.infer(fused::infer_product)
      .lower(fused::lower_product)
      .axes(fused::product_axes)
      .product(Product::kMatrices)
      .work(fused::product_work);
}

TREADLE_OP(SparseToDenseMatMul, "com.microsoft") {
  op.since(1)
      .in("A", "T")
      .in("B", "T")
      .out("Y", "T")
      .attr("alpha", 1.0)
      .attr("transA", 0)
      .attr("transB", 0)
      .type("T", tensors(ElementType::kFloat, ElementType::kDouble, ElementType::kInt32, ElementType::kInt64,
                         ElementType::kUint32, ElementType::kUint64));
  op.infer(fused::infer_sparse_product)
      .lower(fused::lower_product)
      .axes(fused::product_axes)
      .product(Product::kMatrices)
      .work(fused::product_work);
}

TREADLE_OP(FusedMatMulActivation, "com.microsoft") {
  op.since(1)
      .with(fused::add_product)
      .with(fused::add_batch_transposition)
      .required("activation", ir::AttributeKind::kString)
      .with(fused::add_activation_letters)
      .optional("activation_axis", ir::AttributeKind::kInt);
  op.infer(fused::infer_product_and_activation)
      .lower(fused::lower_product_and_activation)
      .axes(fused::product_axes)
      .product(Product::kMatrices)
      .work(fused::product_work);
}

TREADLE_OP(FusedGemm, "com.microsoft") {
  op.since(1)
      .in("A", "T")
      .in("B", "T")
      .in("C", "T", Arity::kOptional)
      .out("Y", "T")
      .optional("activation", ir::AttributeKind::kString)
      .with(fused::add_activation_letters)
      .attr("alpha", 1.0)
      .attr("beta", 1.0)
      .attr("transA", 0)
      .attr("transB", 0)
      .type("T", types::kNumeric32);
  op.infer(fused::infer_gemm)
      .lower(fused::lower_gemm)
      .axes(fused::gemm_axes)
      .product(Product::kMatrices)
      .work(fused::gemm_work);
}

TREADLE_OP(GemmFastGelu, "com.microsoft") {
  op.since(1).in("X", "T").in("W", "T").in("bias", "T", Arity::kOptional).out("Y", "T").type("T", types::kFloatsTo32);
  op.infer(fused::infer_gemm_gelu)
      .lower(fused::lower_gemm_gelu)
      .axes(fused::gemm_gelu_axes)
      .product(Product::kMatrices)
      .work(work::matrix_product<0>);
}
