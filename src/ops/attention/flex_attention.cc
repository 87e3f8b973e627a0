// FlexAttention: attention with bodies that change scores and probabilities.

#include <cmath>

#include "kernels/convert.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "type/make_tensor.h"

namespace treadle::attention {

namespace {

using ir::Attribute;
using ir::Value;

enum Input : size_t { kQuery, kKey, kValue };

// The type in which scores and probabilities are computed.
ElementType precision(const ir::Attributes& attributes, ElementType data) {
  if (attributes.has("softmax_precision")) return element_type_from_number(attributes.get_int("softmax_precision"));
  return data == ElementType::kDouble ? data : ElementType::kFloat;
}

// ---- Inference

Status check_shapes(const InferContext& ctx) {
  static constexpr const char* kNames[] = {"Q", "K", "V"};
  for (size_t i = 0; i < 3; ++i) {
    const Shape* shape = ctx.shape(i);
    if (shape && shape->size() != 4) {
      return error(Code::kInvalidArgument, "{} has shape {}, expected 4 dimensions", kNames[i], to_string(*shape));
    }
  }
  const Shape *q = ctx.shape(kQuery), *k = ctx.shape(kKey), *v = ctx.shape(kValue);
  bool fits = !q || !k || (!differ((*q)[0], (*k)[0]) && !differ((*q)[3], (*k)[3]));
  for (size_t i = 0; fits && k && v && i < 3; ++i) fits = !differ((*k)[i], (*v)[i]);
  if (fits && q && k && (*q)[1].is_known() && (*k)[1].is_known()) {
    const int64_t heads = (*q)[1].value(), shared = (*k)[1].value();
    fits = shared == 0 ? heads == 0 : heads % shared == 0;
  }
  if (fits) return {};
  return error(
      Code::kInvalidArgument,
      "Q is {}, K {} and V {}, expected equal batches, Q and K of one size, K and V of equal heads and lengths",
      ctx.input(kQuery).to_string(), ctx.input(kKey).to_string(), ctx.input(kValue).to_string());
}

// A body takes and returns scores or probabilities of one type.
Status check_body(InferContext& ctx, const char* attribute, const Type& scores) {
  const ir::Region* body = ctx.bodies ? ctx.bodies->region(attribute) : nullptr;
  if (!body) return {};
  if (body->inputs.size() != 1 || body->outputs.size() != 1) {
    return error(Code::kInvalidModel, "{} has {} inputs and {} outputs, expected one of each", attribute,
                 body->inputs.size(), body->outputs.size());
  }
  TREADLE_ASSIGN(const std::vector<Type> results, ctx.bodies->infer(attribute, {scores}));
  const Type& result = results[0];
  bool same = !result.is_known() || (result.is_tensor() && result.element == scores.element);
  if (same && result.is_known() && result.has_shape) {
    same = result.shape.size() == 4;
    for (size_t i = 0; same && i < 4; ++i) same = !differ(result.shape[i], scores.shape[i]);
  }
  if (same) return {};
  return error(Code::kInvalidModel, "{} makes {} of {}, expected the same type", attribute, result.to_string(),
               scores.to_string());
}

Status infer_flex_attention(InferContext& ctx) {
  TREADLE_TRY(check_shapes(ctx));
  const ElementType wide = precision(ctx.attributes(), ctx.element(kQuery));
  if (!types::kFloatsBf16.contains(wide)) {
    return error(Code::kInvalidModel, "attribute softmax_precision is {}, expected the number of a float type",
                 ctx.attributes().get_int("softmax_precision"));
  }
  const Shape *q = ctx.shape(kQuery), *k = ctx.shape(kKey), *v = ctx.shape(kValue);
  const auto size = [](const Shape* shape, size_t i) { return shape ? (*shape)[i] : Dim(); };
  const Type scores = Type::tensor(wide, Shape{size(q, 0), size(q, 1), size(q, 2), size(k, 2)});
  TREADLE_TRY(check_body(ctx, "score_mod", scores));
  TREADLE_TRY(check_body(ctx, "prob_mod", scores));
  ctx.set_output(0, ctx.element(kQuery), {size(q, 0), size(q, 1), size(q, 2), size(v, 3)});
  return {};
}

// ---- Lowering

class Lowering {
 public:
  explicit Lowering(LowerContext& ctx) : ctx_(ctx), data_(ctx.type(kQuery).element) {}

  void run() {
    const ElementType wide = precision(ctx_.attributes(), data_);
    Value* root = scale();
    Value* query = ctx_.call("Mul", {ctx_.input(kQuery), root});
    Value* key = ctx_.call("Mul", {shared(ctx_.input(kKey)), root});
    key = ctx_.call("Transpose", {key}, {Attribute::of("perm", std::vector<int64_t>{0, 1, 3, 2})});
    Value* scores = modified("score_mod", cast(ctx_.call("MatMul", {query, key}), data_, wide));
    Value* weights = modified("prob_mod", ctx_.call("Softmax", {scores}, {Attribute::of("axis", -1)}));
    Value* values = cast(shared(ctx_.input(kValue)), data_, wide);
    ctx_.set_output(0, cast(ctx_.call("MatMul", {weights, values}), wide, data_));
  }

 private:
  Dim size(size_t input, size_t axis) const {
    const Type& type = ctx_.type(input);
    return type.has_shape ? type.shape[axis] : Dim();
  }
  Value* size_of(size_t input, int64_t axis) {
    return ctx_.call("Shape", {ctx_.input(input)}, {Attribute::of("start", axis), Attribute::of("end", axis + 1)});
  }
  Value* cast(Value* v, ElementType from, ElementType to) {
    return from == to ? v : ctx_.call("Cast", {v}, {Attribute::of("to", static_cast<int64_t>(to))});
  }
  Value* modified(std::string_view body, Value* v) {
    if (!ctx_.body(body)) return v;
    Value* arguments[] = {v};
    return ctx_.inline_body(body, arguments)[0];
  }

  // The square root of the scale: both operands of the product are multiplied by it.
  Value* scale() {
    if (const Attribute* given = ctx_.attributes().find("scale")) {
      return scalar(std::sqrt(static_cast<double>(given->as_float())));
    }
    const Dim width = size(kQuery, 3);
    if (width.is_known()) return scalar(std::pow(static_cast<double>(width.value()), -0.25));
    // In double, as for a known size, so that both round to the same number.
    Value* wide = cast(size_of(kQuery, 3), ElementType::kInt64, ElementType::kDouble);
    Value* root = ctx_.call("Pow", {wide, ctx_.number(-0.25, ElementType::kDouble)});
    return cast(root, ElementType::kDouble, data_);
  }
  Value* scalar(double value) {
    Tensor made = make_tensor(data_, {});
    kernels::cast(ElementType::kDouble, data_, &value, made.mutable_raw(), 1);
    return ctx_.constant(std::move(made));
  }

  // Keys or values, repeated so that each query head has a head of its own.
  Value* shared(Value* v) {
    const Dim heads = size(kQuery, 1), of_keys = size(kKey, 1);
    if (heads.is_known() && of_keys.is_known() && heads.value() == of_keys.value()) return v;
    Value* all = ctx_.call("Squeeze", {size_of(kQuery, 1)});
    Value* group = ctx_.call("Div", {all, at_least_one(ctx_.call("Squeeze", {size_of(kKey, 1)}))});
    group = at_least_one(group);  // zero heads share nothing
    Value* heads_in_order = ctx_.call("Range", {ctx_.constant_int64(0), all, ctx_.constant_int64(1)});
    return ctx_.call("Gather", {v, ctx_.call("Div", {heads_in_order, group})}, {Attribute::of("axis", 1)});
  }

  Value* at_least_one(Value* v) { return ctx_.call("Max", {v, ctx_.constant_int64(1)}); }

  LowerContext& ctx_;
  const ElementType data_;
};

Status lower_flex_attention(LowerContext& ctx) {
  Lowering(ctx).run();
  return {};
}

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(FlexAttention, "ai.onnx.preview") {
  op.since(1)
      .in("Q", "T1")
      .in("K", "T1")
      .in("V", "T1")
      .out("Y", "T1")
      .optional("prob_mod", ir::AttributeKind::kGraph)
      .optional("scale", ir::AttributeKind::kFloat)
      .optional("score_mod", ir::AttributeKind::kGraph)
      .optional("softmax_precision", ir::AttributeKind::kInt)
      .type("T1", types::kFloatsBf16);
  op.infer(attention::infer_flex_attention)
      .lower(attention::lower_flex_attention)
      .no_axes("its bodies look at all scores");
}
