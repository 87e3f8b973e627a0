// Operators on quantised tensors that onnxruntime's quantiser writes. Each is lowered to the plain operator, between
// DequantizeLinear of its operands and QuantizeLinear of its result.
#include <fmt/format.h>

#include <array>
#include <numeric>

#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/infer_as.h"
#include "op/op_def.h"
#include "op/operands.h"

namespace treadle::quant {

namespace {

using ir::Attribute;
using ir::Value;

// Input i, dequantised by the scale and zero point that follow it.
Value* wide(LowerContext& ctx, size_t i) {
  std::vector<Value*> inputs{ctx.input(i), ctx.input(i + 1)};
  if (ctx.has_input(i + 2)) inputs.push_back(ctx.input(i + 2));
  return ctx.call("DequantizeLinear", inputs);
}

// Quantises y by the scale in input `scale` and the zero point behind it. Without a zero point the result has the type
// of input 0.
Status set_narrow(LowerContext& ctx, Value* y, size_t scale, ElementType type) {
  std::vector<Value*> inputs{y, ctx.input(scale)};
  std::vector<Attribute> attributes;
  if (ctx.has_input(scale + 1)) {
    inputs.push_back(ctx.input(scale + 1));
  } else {
    attributes.push_back(Attribute::of("output_dtype", static_cast<int64_t>(type)));
  }
  ctx.set_output(0, ctx.call("QuantizeLinear", inputs, std::move(attributes)));
  return {};
}

// Checks that scales and zero points are for whole tensors: [] or [1].
Status check_single(const InferContext& ctx, std::initializer_list<size_t> inputs) {
  for (const size_t i : inputs) {
    const Shape* shape = ctx.shape(i);
    if (!shape || !element_count(*shape).is_known() || element_count(*shape).is_known(1)) continue;
    return error(Code::kInvalidArgument, "{} has shape {}, expected one element", ctx.node.version->inputs[i].name,
                 to_string(*shape));
  }
  return {};
}

// --- element by element

Status infer_one(InferContext& ctx) {
  TREADLE_TRY(check_single(ctx, {1, 2, 3, 4}));
  return infer_like_input(ctx);
}

Status infer_two(InferContext& ctx) {
  TREADLE_TRY(check_single(ctx, {1, 2, 4, 5, 6, 7}));
  return infer_as(ctx, "Add", {0, 3});
}

Status infer_where(InferContext& ctx) {
  TREADLE_TRY(check_single(ctx, {2, 3, 5, 6, 7, 8}));
  return infer_as(ctx, "Where", {0, 1, 4});
}

Status lower_add(LowerContext& ctx) {
  return set_narrow(ctx, ctx.call("Add", {wide(ctx, 0), wide(ctx, 3)}), 6, ctx.type(0).element);
}

Status lower_mul(LowerContext& ctx) {
  return set_narrow(ctx, ctx.call("Mul", {wide(ctx, 0), wide(ctx, 3)}), 6, ctx.type(0).element);
}

Status lower_sigmoid(LowerContext& ctx) {
  return set_narrow(ctx, ctx.call("Sigmoid", {wide(ctx, 0)}), 3, ctx.type(0).element);
}

Status lower_leaky_relu(LowerContext& ctx) {
  const Attribute alpha = Attribute::of("alpha", ctx.attributes().get_float("alpha"));
  return set_narrow(ctx, ctx.call("LeakyRelu", {wide(ctx, 0)}, {alpha}), 3, ctx.type(0).element);
}

Status lower_where(LowerContext& ctx) {
  return set_narrow(ctx, ctx.call("Where", {ctx.input(0), wide(ctx, 1), wide(ctx, 4)}), 7, ctx.type(1).element);
}

// --- along axes

Status infer_softmax(InferContext& ctx) {
  if (const Shape* x = ctx.shape(0)) {
    const auto rank = static_cast<int64_t>(x->size());
    TREADLE_TRY(normalize_axis(ctx.attributes().get_int("axis"), rank).status());
  }
  return infer_one(ctx);
}

// Before version 13 of Softmax, all axes from `axis` on count as one.
Status lower_softmax(LowerContext& ctx) {
  const Attribute axis = Attribute::of("axis", ctx.attributes().get_int("axis"));
  Value* x = wide(ctx, 0);
  if (ctx.attributes().get_int("opset") >= 13) {
    return set_narrow(ctx, ctx.call("Softmax", {x}, {axis}), 3, ctx.type(0).element);
  }
  Value* y = ctx.call("Softmax", {ctx.call("Flatten", {x}, {axis})});
  Value* shaped = ctx.call("Reshape", {y, ctx.call("Shape", {ctx.input(0)})});
  return set_narrow(ctx, shaped, 3, ctx.type(0).element);
}

Status softmax_axes(AxisContext& c) {
  const int64_t axis = c.axis(c.rank(0), -1);
  const bool within = c.attributes().get_int("opset") >= 13 ? c.in(0) == axis : c.in(0) >= axis;
  if (within) return looks_along(fmt::format("its softmax runs over axis {}", c.in(0)));
  return c.give(0, c.in(0));
}

constexpr size_t kFirstPart = 2;

Status infer_concat(InferContext& ctx) {
  if (ctx.inputs.size() < kFirstPart + 3 || (ctx.inputs.size() - kFirstPart) % 3 != 0) {
    return error(Code::kInvalidModel,
                 "{} inputs follow the zero point, expected a tensor, a scale and a zero point each",
                 ctx.inputs.size() - std::min(ctx.inputs.size(), kFirstPart));
  }
  std::vector<size_t> parts;
  for (size_t i = kFirstPart; i < ctx.inputs.size(); i += 3) parts.push_back(i);
  TREADLE_TRY(infer_as(ctx, "Concat", parts));
  Type joined = ctx.outputs[0];
  joined.element = ctx.element(1);
  ctx.set_output(0, std::move(joined));
  return {};
}

Status lower_concat(LowerContext& ctx) {
  std::vector<Value*> parts;
  for (size_t i = kFirstPart; i < ctx.input_count(); i += 3) parts.push_back(wide(ctx, i));
  Value* joined = ctx.call("Concat", parts, {Attribute::of("axis", ctx.attributes().get_int("axis"))});
  return set_narrow(ctx, joined, 0, ctx.type(1).element);
}

Status infer_mean(InferContext& ctx) {
  TREADLE_TRY(check_single(ctx, {1, 2, 3, 4}));
  return infer_as(ctx, "ReduceMean", {0});
}

Status lower_mean(LowerContext& ctx) {
  Value* axes = ctx.constant(Tensor::of_int64(ctx.attributes().get_ints("axes")));
  Value* mean = ctx.call("ReduceMean", {wide(ctx, 0), axes},
                         {Attribute::of("keepdims", ctx.attributes().get_int("keepdims", 1))});
  return set_narrow(ctx, mean, 3, ctx.type(0).element);
}

// --- windows

// [N, C, ...] from [N, ..., C], or back.
Shape moved(const Shape& shape, bool to_first) {
  Shape result = shape;
  if (shape.size() < 3) return result;
  for (size_t i = 1; i < shape.size(); ++i) {
    const size_t from = to_first ? (i == 1 ? shape.size() - 1 : i - 1) : (i + 1 == shape.size() ? 1 : i + 1);
    result[i] = shape[from];
  }
  return result;
}

// Infers as `op` with `operands`, of which the first may be NHWC.
Status infer_windows(InferContext& ctx, const char* op, std::span<const size_t> operands) {
  if (ctx.attributes().get_int("channels_last") == 0 || !ctx.shape(0)) return infer_as(ctx, op, operands);
  const Type first = Type::tensor(ctx.element(0), moved(*ctx.shape(0), true));
  std::vector<const Type*> inputs(ctx.inputs.begin(), ctx.inputs.end());
  inputs[0] = &first;
  InferContext inner = ctx;
  inner.inputs = inputs;
  inner.values = {};
  inner.symbols = {};
  TREADLE_TRY(infer_as(inner, op, operands));
  Type result = ctx.outputs[0];
  if (result.has_shape) result.shape = moved(result.shape, false);
  ctx.set_output(0, std::move(result));
  return {};
}

Status infer_pool(InferContext& ctx, const char* op) {
  TREADLE_TRY(check_single(ctx, {1, 2, 3, 4}));
  return infer_windows(ctx, op, std::array<size_t, 1>{0});
}

Status infer_average(InferContext& ctx) {
  return infer_pool(ctx, "AveragePool");
}

Status infer_global_average(InferContext& ctx) {
  return infer_pool(ctx, "GlobalAveragePool");
}

Value* move_axis(LowerContext& ctx, Value* v, int64_t from, int64_t to) {
  if (ctx.attributes().get_int("channels_last") == 0) return v;
  return ctx.call("MoveAxis", {v}, {Attribute::of("from", from), Attribute::of("to", to)}, "treadle");
}
Value* channels_second(LowerContext& ctx, Value* x) {
  return move_axis(ctx, x, -1, 1);
}
Value* channels_back(LowerContext& ctx, Value* y) {
  return move_axis(ctx, y, 1, -1);
}

std::vector<Attribute> handed_on(const LowerContext& ctx, std::initializer_list<const char*> names) {
  std::vector<Attribute> attributes;
  for (const char* name : names) {
    if (const Attribute* a = ctx.attributes().find(name)) attributes.push_back(*a);
  }
  return attributes;
}

Status lower_pool(LowerContext& ctx, const char* op, std::vector<Attribute> attributes) {
  Value* y = ctx.call(op, {channels_second(ctx, wide(ctx, 0))}, std::move(attributes));
  return set_narrow(ctx, channels_back(ctx, y), 3, ctx.type(0).element);
}

Status lower_average(LowerContext& ctx) {
  return lower_pool(ctx, "AveragePool",
                    handed_on(ctx, {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"}));
}

Status lower_global_average(LowerContext& ctx) {
  return lower_pool(ctx, "GlobalAveragePool", {});
}

// --- QLinearConv, whose weights are never NHWC

Status infer_conv(InferContext& ctx) {
  std::vector<size_t> operands(ctx.inputs.size());
  std::iota(operands.begin(), operands.end(), size_t{0});
  return infer_windows(ctx, "QLinearConv", operands);
}

Status lower_conv(LowerContext& ctx) {
  std::vector<Value*> inputs;
  for (size_t i = 0; i < ctx.input_count(); ++i) inputs.push_back(ctx.has_input(i) ? ctx.input(i) : nullptr);
  inputs[0] = channels_second(ctx, inputs[0]);
  Value* y = ctx.call("QLinearConv", inputs,
                      handed_on(ctx, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  ctx.set_output(0, channels_back(ctx, y));
  return {};
}

// --- QuantizeLinear and DequantizeLinear with an axis for a vector of scales

std::vector<Attribute> scale_attributes(const LowerContext& ctx) {
  std::vector<Attribute> attributes;
  if (const Attribute* axis = ctx.attributes().find("axis")) attributes.push_back(*axis);
  return attributes;
}

std::vector<Value*> three_inputs(const LowerContext& ctx) {
  std::vector<Value*> inputs{ctx.input(0), ctx.input(1)};
  if (ctx.has_input(2)) inputs.push_back(ctx.input(2));
  return inputs;
}

Status infer_scaled(InferContext& ctx, ElementType type) {
  TREADLE_TRY(infer_like_input(ctx));
  Type result = ctx.outputs[0];
  result.element = type;
  ctx.set_output(0, std::move(result));
  return {};
}

Status infer_quantize(InferContext& ctx) {
  return infer_scaled(ctx, ctx.has_input(2) ? ctx.element(2) : ElementType::kUint8);
}

Status infer_dequantize(InferContext& ctx) {
  return infer_scaled(ctx, ctx.element(1));
}

Status lower_quantize(LowerContext& ctx) {
  ctx.set_output(0, ctx.call("QuantizeLinear", three_inputs(ctx), scale_attributes(ctx)));
  return {};
}

Status lower_dequantize(LowerContext& ctx) {
  ctx.set_output(0, ctx.call("DequantizeLinear", three_inputs(ctx), scale_attributes(ctx)));
  return {};
}

// --- records

void add_operand(VersionBuilder& v, const char* x, const char* scale, const char* zero) {
  v.in(x, "T").in(scale, "tensor(float)").in(zero, "T", Arity::kOptional);
}

void add_result(VersionBuilder& v, const char* scale, const char* zero) {
  v.in(scale, "tensor(float)").in(zero, "T", Arity::kOptional).type("T", types::kBytes);
}

void add_one(VersionBuilder& v) {
  add_operand(v, "X", "X_scale", "X_zero_point");
  add_result(v.out("Y", "T"), "Y_scale", "Y_zero_point");
}

void add_two(VersionBuilder& v) {
  add_operand(v, "A", "A_scale", "A_zero_point");
  add_operand(v, "B", "B_scale", "B_zero_point");
  add_result(v.out("C", "T"), "C_scale", "C_zero_point");
}

template <Arity kZeros>
void add_pool(VersionBuilder& v) {
  v.in("X", "T").in("x_scale", "tensor(float)").in("x_zero_point", "T", kZeros);
  v.in("y_scale", "tensor(float)").in("y_zero_point", "T", kZeros).out("Y", "T");
  v.attr("channels_last", 0).type("T", types::kBytes);
}

Status binary_axes(AxisContext& c) {
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (i != 0 && i != 3 && c.runs_along(i)) return looks_along("its scales have axes of their own");
  }
  return c.rank(0) == c.rank(3) ? axes::broadcast(c) : looks_along("its operands have unlike ranks");
}

}  // namespace

}  // namespace treadle::quant

TREADLE_OP(QLinearAdd, "com.microsoft") {
  op.since(1).with(quant::add_two);
  op.infer(quant::infer_two).lower(quant::lower_add).axes(quant::binary_axes);
}

TREADLE_OP(QLinearMul, "com.microsoft") {
  op.since(1).with(quant::add_two);
  op.infer(quant::infer_two).lower(quant::lower_mul).axes(quant::binary_axes);
}

TREADLE_OP(QLinearSigmoid, "com.microsoft") {
  op.since(1).with(quant::add_one);
  op.infer(quant::infer_one).lower(quant::lower_sigmoid).axes(axes::element_by_element, axes::unchanged);
}

TREADLE_OP(QLinearLeakyRelu, "com.microsoft") {
  op.since(1).with(quant::add_one).attr("alpha", 0.01);
  op.infer(quant::infer_one).lower(quant::lower_leaky_relu).axes(axes::element_by_element, axes::unchanged);
}

TREADLE_OP(QLinearSoftmax, "com.microsoft") {
  op.since(1)
      .in("X", "T")
      .in("X_scale", "tensor(float)")
      .in("x_zero_point", "T", Arity::kOptional)
      .in("y_scale", "tensor(float)")
      .in("y_zero_point", "T")
      .out("Y", "T")
      .attr("axis", -1)
      .required("opset", ir::AttributeKind::kInt)
      .type("T", types::kBytes);
  op.infer(quant::infer_softmax).lower(quant::lower_softmax).axes(quant::softmax_axes);
}

TREADLE_OP(QLinearWhere, "com.microsoft") {
  op.since(1)
      .in("condition", "B")
      .in("X", "T")
      .in("x_scale", "TF")
      .in("x_zero_point", "T")
      .in("Y", "T")
      .in("y_scale", "TF")
      .in("y_zero_point", "T")
      .in("z_scale", "TF")
      .in("z_zero_point", "T")
      .out("Z", "T")
      .type("B", types::kBools)
      .type("TF", types::kFloat32s)
      .type("T", types::kBytes);
  op.infer(quant::infer_where).lower(quant::lower_where).no_axes("its operands lie between scales");
}

TREADLE_OP(QLinearConcat, "com.microsoft") {
  op.since(1)
      .in("Y_scale", "TF")
      .in("Y_zero_point", "T8")
      .in("inputs", "TV", Arity::kVariadicMixed)
      .out("Y", "T8")
      .required("axis", ir::AttributeKind::kInt)
      .type("TF", types::kFloat32s)
      .type("T8", types::kBytes)
      .type("TV", types::kBytes | types::kFloat32s);
  op.infer(quant::infer_concat).lower(quant::lower_concat).no_axes("its operands lie between scales");
}

TREADLE_OP(QLinearReduceMean, "com.microsoft") {
  op.since(1)
      .in("data", "T")
      .in("data_scale", "tensor(float)")
      .in("data_zero_point", "T", Arity::kOptional)
      .in("reduced_scale", "tensor(float)")
      .in("reduced_zero_point", "T", Arity::kOptional)
      .out("reduced", "T")
      .required("axes", ir::AttributeKind::kInts)
      .required("keepdims", ir::AttributeKind::kInt)
      .type("T", types::kBytes);
  op.infer(quant::infer_mean).lower(quant::lower_mean).no_axes("it adds up along axes that an attribute names");
}

TREADLE_OP(QLinearAveragePool, "com.microsoft") {
  op.since(1)
      .with(quant::add_pool<Arity::kOptional>)
      .attr("auto_pad", "NOTSET")
      .attr("ceil_mode", 0)
      .attr("count_include_pad", 0)
      .required("kernel_shape", ir::AttributeKind::kInts)
      .optional("pads", ir::AttributeKind::kInts)
      .optional("strides", ir::AttributeKind::kInts);
  op.infer(quant::infer_average).lower(quant::lower_average).axes(axes::entries);
}

TREADLE_OP(QLinearGlobalAveragePool, "com.microsoft") {
  op.since(1).with(quant::add_pool<Arity::kSingle>);
  op.infer(quant::infer_global_average).lower(quant::lower_global_average).axes(axes::entries);
}

TREADLE_OP(QLinearConv, "com.microsoft") {
  op.since(1)
      .in("x", "T1")
      .in("x_scale", "tensor(float)")
      .in("x_zero_point", "T1")
      .in("w", "T2")
      .in("w_scale", "tensor(float)")
      .in("w_zero_point", "T2")
      .in("y_scale", "tensor(float)")
      .in("y_zero_point", "T3")
      .in("B", "T4", Arity::kOptional)
      .out("y", "T3")
      .attr("auto_pad", "NOTSET")
      .attr("channels_last", 0)
      .optional("dilations", ir::AttributeKind::kInts)
      .attr("group", 1)
      .optional("kernel_shape", ir::AttributeKind::kInts)
      .optional("pads", ir::AttributeKind::kInts)
      .optional("strides", ir::AttributeKind::kInts)
      .type("T1", types::kBytes)
      .type("T2", types::kBytes)
      .type("T3", types::kBytes)
      .type("T4", types::kInt32s);
  op.infer(quant::infer_conv).lower(quant::lower_conv).axes(axes::entries);
}

TREADLE_OP(QuantizeLinear, "com.microsoft") {
  op.since(1)
      .in("x", "T1")
      .in("y_scale", "T1")
      .in("y_zero_point", "T2", Arity::kOptional)
      .out("y", "T2")
      .optional("axis", ir::AttributeKind::kInt)
      .type("T1", tensors(ElementType::kFloat, ElementType::kFloat16))
      .type("T2", tensors(ElementType::kInt8, ElementType::kUint8, ElementType::kInt16, ElementType::kUint16,
                          ElementType::kInt4, ElementType::kUint4));
  op.infer(quant::infer_quantize).lower(quant::lower_quantize).no_axes("its scales may run along any axis");
}

TREADLE_OP(DequantizeLinear, "com.microsoft") {
  op.since(1)
      .in("x", "T1")
      .in("x_scale", "T2")
      .in("x_zero_point", "T1", Arity::kOptional)
      .out("y", "T2")
      .optional("axis", ir::AttributeKind::kInt)
      .type("T1", tensors(ElementType::kInt8, ElementType::kUint8, ElementType::kInt16, ElementType::kUint16,
                          ElementType::kInt32, ElementType::kInt4, ElementType::kUint4))
      .type("T2", tensors(ElementType::kFloat, ElementType::kFloat16));
  op.infer(quant::infer_dequantize).lower(quant::lower_dequantize).no_axes("its scales may run along any axis");
}
