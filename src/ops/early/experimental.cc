// Experimental operators of ai.onnx, which existed from version 1 until operator set 10. Each is lowered to other
// operators.
#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/operands.h"

namespace treadle::early {

namespace {

using ir::Attribute;
using ir::Value;

Value* attribute(LowerContext& ctx, const char* name, float otherwise) {
  return ctx.number(static_cast<double>(ctx.attributes().get_float(name, otherwise)), ctx.type(0).element);
}

Status lower_affine(LowerContext& ctx) {
  Value* scaled = ctx.call("Mul", {ctx.input(0), attribute(ctx, "alpha", 1)});
  ctx.set_output(0, ctx.call("Add", {scaled, attribute(ctx, "beta", 0)}));
  return {};
}

Status lower_scale(LowerContext& ctx) {
  ctx.set_output(0, ctx.call("Mul", {ctx.input(0), attribute(ctx, "scale", 1)}));
  return {};
}

// y = alpha * f(beta * x). The document gives no defaults.
Status infer_scaled(InferContext& ctx) {
  for (const char* name : {"alpha", "beta"}) {
    if (!ctx.attributes().find(name)) return error(Code::kInvalidModel, "attribute {} is missing", name);
  }
  return infer_like_input(ctx);
}

Status lower_scaled(LowerContext& ctx, const char* function) {
  Value* inner = ctx.call(function, {ctx.call("Mul", {ctx.input(0), attribute(ctx, "beta", 1)})});
  ctx.set_output(0, ctx.call("Mul", {inner, attribute(ctx, "alpha", 1)}));
  return {};
}

Status lower_softplus(LowerContext& ctx) {
  return lower_scaled(ctx, "Softplus");
}

Status lower_tanh(LowerContext& ctx) {
  return lower_scaled(ctx, "Tanh");
}

// --- images, [N, C, H, W]

Status check_image(const InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  if (!x || x->size() == 4) return {};
  return error(Code::kInvalidArgument, "input has shape {}, expected [N,C,H,W]", to_string(*x));
}

Status infer_image_scaler(InferContext& ctx) {
  TREADLE_TRY(check_image(ctx));
  const auto biases = static_cast<int64_t>(ctx.attributes().get_floats("bias").size());
  const Shape* x = ctx.shape(0);
  if (x && differ((*x)[1], Dim(biases))) {
    return error(Code::kInvalidModel, "attribute bias has {} numbers, expected one for each channel of {}", biases,
                 to_string(*x));
  }
  return infer_like_input(ctx);
}

Status lower_image_scaler(LowerContext& ctx) {
  Value* bias = ctx.constant(Tensor::of_float(ctx.attributes().get_floats("bias")));
  if (ctx.type(0).element != ElementType::kFloat) bias = ctx.call("CastLike", {bias, ctx.input(0)});
  bias = ctx.call("Unsqueeze", {bias, ctx.constant_int64s({1, 2})});
  ctx.set_output(0, ctx.call("Add", {ctx.call("Mul", {ctx.input(0), attribute(ctx, "scale", 1)}), bias}));
  return {};
}

struct Cut {
  int64_t begin = 0, from_end = 0;
  std::optional<int64_t> size;  // replaces from_end
};

// The cuts of H and W. `border`: left, top, right, bottom; `scale`: height and width of the result.
Result<std::pair<Cut, Cut>> read_cuts(const ir::Attributes& attributes) {
  const auto border = attributes.get_ints("border"), scale = attributes.get_ints("scale");
  if (border.size() != 4) {
    return error(Code::kInvalidModel, "attribute border has {} numbers, expected 4: left, top, right, bottom",
                 border.size());
  }
  if (!scale.empty() && scale.size() != 2) {
    return error(Code::kInvalidModel, "attribute scale has {} numbers, expected 2: height, width", scale.size());
  }
  std::pair<Cut, Cut> cuts{{border[1], border[3], {}}, {border[0], border[2], {}}};
  if (!scale.empty()) cuts.first.size = scale[0], cuts.second.size = scale[1];
  return cuts;
}

Status infer_crop(InferContext& ctx) {
  TREADLE_TRY(check_image(ctx));
  TREADLE_ASSIGN(const auto cuts, read_cuts(ctx.attributes()));
  const Shape* x = ctx.shape(0);
  if (!x) return ctx.set_output(0, ctx.element(0)), Status();
  Shape result = *x;
  const Cut* of[] = {&cuts.first, &cuts.second};
  for (size_t i = 0; i < 2; ++i) {
    Dim& size = result[2 + i];
    const int64_t needed = of[i]->begin + of[i]->size.value_or(of[i]->from_end);
    if (of[i]->begin < 0 || of[i]->from_end < 0 || (size.is_known() && size.value() < needed)) {
      return error(Code::kInvalidArgument, "input has shape {}, expected at least what is cut: {} along axis {}",
                   to_string(*x), needed, 2 + i);
    }
    size = of[i]->size ? Dim(*of[i]->size) : size - Dim(of[i]->begin + of[i]->from_end);
  }
  ctx.set_output(0, ctx.element(0), std::move(result));
  return {};
}

Status lower_crop(LowerContext& ctx) {
  TREADLE_ASSIGN(const auto cuts, read_cuts(ctx.attributes()));
  const auto end = [](const Cut& cut) {
    if (cut.size) return cut.begin + *cut.size;
    return cut.from_end > 0 ? -cut.from_end : std::numeric_limits<int64_t>::max();
  };
  ctx.set_output(
      0, ctx.call("Slice", {ctx.input(0), ctx.constant_int64s({cuts.first.begin, cuts.second.begin}),
                            ctx.constant_int64s({end(cuts.first), end(cuts.second)}), ctx.constant_int64s({2, 3})}));
  return {};
}

Status image_axes(AxisContext& c) {
  if (c.in(0) >= 2) return looks_along("it cuts along it");
  return c.give(0, c.in(0));
}

Status scaler_axes(AxisContext& c) {
  if (c.in(0) == 1) return looks_along("its biases run along it");
  return c.give(0, c.in(0));
}

// --- DynamicSlice

Status infer_dynamic_slice(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  if (x) {
    ctx.set_output(0, ctx.element(0), unknown_shape(x->size()));
  } else {
    ctx.set_output(0, ctx.element(0));
  }
  return {};
}

Status lower_dynamic_slice(LowerContext& ctx) {
  std::vector<Value*> inputs{ctx.input(0), ctx.input(1), ctx.input(2)};
  if (ctx.has_input(3)) inputs.push_back(ctx.input(3));
  ctx.set_output(0, ctx.call("Slice", inputs));
  return {};
}

void add_scaled(VersionBuilder& v, const char* x, const char* y) {
  v.in(x, "T").out(y, "T").optional("alpha", ir::AttributeKind::kFloat).optional("beta", ir::AttributeKind::kFloat);
  v.type("T", types::kFloats);
}

}  // namespace

}  // namespace treadle::early

TREADLE_OP(Affine, "") {
  op.since(1).in("X", "T").out("Y", "T").attr("alpha", 1.0).attr("beta", 0.0).type("T", types::kFloats);
  op.since(10).deprecated();
  op.infer(infer_like_input).lower(early::lower_affine).axes(axes::element_by_element, axes::unchanged);
}

TREADLE_OP(Scale, "") {
  op.since(1).in("input", "T").out("output", "T").attr("scale", 1.0).type("T", types::kFloats);
  op.since(10).deprecated();
  op.infer(infer_like_input).lower(early::lower_scale).axes(axes::element_by_element, axes::unchanged);
}

TREADLE_OP(ParametricSoftplus, "") {
  op.since(1).with([](VersionBuilder& v) { early::add_scaled(v, "X", "Y"); });
  op.since(10).deprecated();
  op.infer(early::infer_scaled).lower(early::lower_softplus).axes(axes::element_by_element, axes::unchanged);
}

TREADLE_OP(ScaledTanh, "") {
  op.since(1).with([](VersionBuilder& v) { early::add_scaled(v, "input", "output"); });
  op.since(10).deprecated();
  op.infer(early::infer_scaled).lower(early::lower_tanh).axes(axes::element_by_element, axes::unchanged);
}

TREADLE_OP(ImageScaler, "") {
  op.since(1)
      .in("input", "T")
      .out("output", "T")
      .optional("bias", ir::AttributeKind::kFloats)
      .attr("scale", 1.0)
      .type("T", types::kFloats);
  op.since(10).deprecated();
  op.infer(early::infer_image_scaler).lower(early::lower_image_scaler).axes(early::scaler_axes);
}

TREADLE_OP(Crop, "") {
  op.since(1)
      .in("input", "T")
      .out("output", "T")
      .optional("border", ir::AttributeKind::kInts)
      .optional("scale", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(10).required("border", ir::AttributeKind::kInts).deprecated();
  op.infer(early::infer_crop).lower(early::lower_crop).axes(early::image_axes);
}

TREADLE_OP(DynamicSlice, "") {
  op.since(1)
      .in("data", "T")
      .in("starts", "Tind")
      .in("ends", "Tind")
      .in("axes", "Tind", Arity::kOptional)
      .out("output", "T")
      .type("T", types::kAllTensors)
      .type("Tind", types::kIndices);
  op.since(10).deprecated();
  op.infer(early::infer_dynamic_slice).lower(early::lower_dynamic_slice).no_axes("its bounds are data");
}
