// QMoE: experts whose weights are numbers of 2, 4 or 8 bits in bytes, with a scale and optionally a zero point for each
// row of an expert's matrix or each block of a row. The weights become floats; constant weights only once.

#include <algorithm>
#include <array>

#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/fused/calls.h"
#include "ops/nn/experts.h"
#include "ops/quant/packed_bits.h"

namespace treadle::quant {

namespace {

using ir::Value;

enum Input : size_t {
  kTokens,
  kRouter,
  kWeights,  // for three layers each: weights, scales, bias
  kZeros = 11,
  kRouterWeights = 14,
  kGlobalScales = 15,  // this and further inputs are for other number formats
};
constexpr size_t kLayers = 3;

// A layer's weights [experts, rows, bytes].
struct Layer {
  size_t weights, scales, bias, zeros;

  explicit Layer(size_t i) : weights(kWeights + 3 * i), scales(weights + 1), bias(weights + 2), zeros(kZeros + i) {}
};

int bits_of(const ir::Attributes& attributes, size_t layer) {
  static constexpr const char* kNames[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                           "fc3_expert_weight_bits"};
  return static_cast<int>(attributes.get_int(kNames[layer], attributes.get_int("expert_weight_bits")));
}

int64_t block_of(const ir::Attributes& attributes) {
  return attributes.get_int("block_size", 0);
}

// ---- Inference

Status check_attributes(const InferContext& ctx) {
  const ir::Attributes& given = ctx.attributes();
  if (const std::string_view kind = given.get_string("quant_type"); kind != "int") {
    return error(Code::kNotImplemented, "attribute quant_type is '{}', expected 'int'", kind);
  }
  if (given.get_int("weights_prepacked") == 1) {
    return error(Code::kNotImplemented, "attribute weights_prepacked is 1: weights are laid out for another device");
  }
  for (size_t i = 0; i < kLayers; ++i) {
    const int bits = bits_of(given, i);
    if (bits != 2 && bits != 4 && bits != 8) {
      return error(Code::kInvalidModel, "weights of layer {} have {} bits, expected 2, 4 or 8", i + 1, bits);
    }
  }
  const int64_t block = block_of(given);
  if (given.has("block_size") && (block < 16 || (block & (block - 1)) != 0)) {
    return error(Code::kInvalidModel, "attribute block_size is {}, expected a power of 2 from 16 on", block);
  }
  for (size_t i = kGlobalScales; i < ctx.inputs.size(); ++i) {
    if (!ctx.has_input(i)) continue;
    return error(Code::kInvalidModel, "{} is given, expected only beside another quant_type than 'int'",
                 ctx.node.version->inputs[i].name);
  }
  return {};
}

// Checks known sizes against `expected`.
Status check_sizes(const InferContext& ctx, size_t i, std::initializer_list<Dim> expected) {
  const Shape* shape = ctx.shape(i);
  if (!shape) return {};
  bool fits = shape->size() == expected.size();
  for (size_t k = 0; fits && k < shape->size(); ++k) fits = !differ((*shape)[k], expected.begin()[k]);
  if (fits) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected {}", ctx.node.version->inputs[i].name,
               to_string(*shape), to_string(Shape(expected)));
}

// Checks a layer with `columns` inputs.
Status check_layer(const InferContext& ctx, size_t i, const Dim& columns) {
  const Layer layer(i);
  const Shape* w = ctx.shape(layer.weights);
  if (!w) return {};
  const int64_t bits = bits_of(ctx.attributes(), i), block = block_of(ctx.attributes());
  if (columns.is_known(0)) {
    return error(Code::kInvalidArgument, "{} have shape {}, expected at least one weight in a row",
                 ctx.node.version->inputs[layer.weights].name, to_string(*w));
  }
  TREADLE_TRY(check_sizes(ctx, layer.weights,
                          {(*w)[0], w->size() > 1 ? (*w)[1] : Dim(), ceil_div(columns * Dim(bits), Dim(8))}));
  const Dim &experts = (*w)[0], &rows = (*w)[1];
  TREADLE_TRY(check_sizes(ctx, layer.bias, {experts, rows}));
  if (!ctx.has_input(layer.scales))
    return error(Code::kInvalidModel, "fc{}_scales are missing, expected with fc{}_experts_weights", i + 1, i + 1);
  if (block == 0) {
    const Shape* scales = ctx.shape(layer.scales);
    if (scales && scales->size() == 3) return check_sizes(ctx, layer.scales, {experts, rows, Dim(1)});
    TREADLE_TRY(check_sizes(ctx, layer.scales, {experts, rows}));
    return check_sizes(ctx, layer.zeros, {experts, ceil_div(rows * Dim(bits), Dim(8))});
  }
  if (columns.is_known() && columns.value() % block != 0) {
    return error(Code::kInvalidModel, "attribute block_size is {}, expected one that divides rows of {} weights", block,
                 columns.value());
  }
  const Dim blocks = floor_div(columns, Dim(block));
  TREADLE_TRY(check_sizes(ctx, layer.scales, {experts, rows, blocks}));
  return check_sizes(ctx, layer.zeros, {experts, rows, ceil_div(blocks * Dim(bits), Dim(8))});
}

Status infer_quantized(InferContext& ctx) {
  TREADLE_TRY(nn::check_routing(ctx));
  TREADLE_TRY(check_attributes(ctx));
  const Shape *x = ctx.shape(kTokens), *second = ctx.shape(Layer(1).weights);
  const Dim size = x ? x->back() : Dim();
  Dim inner;
  if (second && second->size() == 3) inner = floor_div((*second)[2] * Dim(8), Dim(bits_of(ctx.attributes(), 1)));
  TREADLE_TRY(check_layer(ctx, 0, size));
  TREADLE_TRY(check_layer(ctx, 1, inner));
  if (ctx.has_input(Layer(2).weights)) TREADLE_TRY(check_layer(ctx, 2, size));
  return infer_like_input(ctx);
}

// ---- Lowering

Result<Value*> float_weights(LowerContext& ctx, size_t i) {
  const Layer layer(i);
  const Type &type = ctx.type(layer.weights), &x = ctx.type(kTokens);
  const bool known = type.has_shape && x.has_shape &&
                     std::all_of(type.shape.begin(), type.shape.end(), [](const Dim& d) { return d.is_known(); });
  if (!known) return error(Code::kNotImplemented, "fc{}_experts_weights of unknown sizes", i + 1);
  const int64_t bits = bits_of(ctx.attributes(), i), experts = type.shape[0].value(),
                rows = experts * type.shape[1].value();
  const int64_t columns = type.shape[2].value() * 8 / bits;
  const int64_t block = block_of(ctx.attributes()) > 0 ? block_of(ctx.attributes()) : columns;
  const int64_t blocks = columns / block;
  Value* q = ctx.call("Reshape", {unpacked(ctx, ctx.input(layer.weights), bits, rows, columns),
                                  ctx.constant_int64s({rows, blocks, block})});
  Value* zero = ctx.number(static_cast<double>(1 << (bits - 1)), ElementType::kFloat);
  if (ctx.has_input(layer.zeros)) {
    // Zero points of whole rows follow each other without gaps. Those of blocks begin a new byte for each row.
    const bool whole = block_of(ctx.attributes()) == 0;
    zero = unpacked(ctx, ctx.input(layer.zeros), bits, whole ? experts : rows,
                    whole ? rows / std::max<int64_t>(experts, 1) : blocks);
    zero = ctx.call("Reshape", {zero, ctx.constant_int64s({rows, blocks, 1})});
  }
  Value* scale = ctx.call(
      "Reshape", {fused::input_as(ctx, layer.scales, ElementType::kFloat), ctx.constant_int64s({rows, blocks, 1})});
  Value* w = ctx.call("Mul", {ctx.call("Sub", {q, zero}), scale});
  return ctx.call("Reshape", {w, ctx.constant_int64s({experts, -1, columns})});
}

Status lower_quantized(LowerContext& ctx) {
  const auto as_float = [&](size_t i) {
    return ctx.has_input(i) ? fused::input_as(ctx, i, ElementType::kFloat) : nullptr;
  };
  std::array<Value*, nn::kExpertInputs> inputs{as_float(kTokens), as_float(kRouter)};
  for (size_t i = 0; i < kLayers; ++i) {
    const Layer layer(i);
    if (!ctx.has_input(layer.weights)) continue;
    TREADLE_ASSIGN(inputs[2 + 2 * i], float_weights(ctx, i));
    inputs[3 + 2 * i] = as_float(layer.bias);
  }
  inputs[8] = as_float(kRouterWeights);
  // onnxruntime takes the softmax over the chosen experts only, so its weights are normalised, whatever the attribute
  // says. The attribute counts for separate router weights.
  const bool normalized = !inputs[8] || ctx.attributes().get_int("normalize_routing_weights") != 0;
  ctx.set_output(0, nn::call_experts(ctx, inputs, ctx.type(kTokens).element, normalized));
  return {};
}

void add_layer(VersionBuilder& version, const char* weights, const char* scales, const char* bias, Arity arity) {
  version.in(weights, "T1", arity).in(scales, "T2", Arity::kOptional).in(bias, "T", Arity::kOptional);
}

void add_inputs(VersionBuilder& version) {
  version.in("input", "T").in("router_probs", "T");
  add_layer(version, "fc1_experts_weights", "fc1_scales", "fc1_experts_bias", Arity::kSingle);
  add_layer(version, "fc2_experts_weights", "fc2_scales", "fc2_experts_bias", Arity::kSingle);
  add_layer(version, "fc3_experts_weights", "fc3_scales", "fc3_experts_bias", Arity::kOptional);
  for (const char* zeros : {"fc1_zero_points", "fc2_zero_points", "fc3_zero_points"}) {
    version.in(zeros, "T1", Arity::kOptional);
  }
  version.in("router_weights", "T", Arity::kOptional);
  for (const char* scale : {"fc1_global_scale", "fc2_global_scale", "fc1_act_scale", "fc2_act_scale"}) {
    version.in(scale, "T4", Arity::kOptional);
  }
  version.in("fc1_act_block_scale", "T2", Arity::kOptional).in("fc2_act_block_scale", "T2", Arity::kOptional);
}

}  // namespace

}  // namespace treadle::quant

TREADLE_OP(QMoE, "com.microsoft") {
  op.since(1)
      .with(quant::add_inputs)
      .out("output", "T")
      .with(nn::add_expert_attributes)
      .attr("accuracy_level", 0)
      .optional("block_size", ir::AttributeKind::kInt)
      .attr("expert_weight_bits", 4)
      .optional("fc1_expert_weight_bits", ir::AttributeKind::kInt)
      .optional("fc2_expert_weight_bits", ir::AttributeKind::kInt)
      .optional("fc3_expert_weight_bits", ir::AttributeKind::kInt)
      .attr("quant_type", "int")
      .attr("weights_prepacked", -1)
      .type("T", types::kFloatsTo32)
      .type("T1", tensors(ElementType::kUint8, ElementType::kFloat8e4m3fn))
      .type("T2", types::kFloatsTo32 | tensors(ElementType::kFloat8e8m0, ElementType::kFloat8e4m3fn))
      .type("T4", types::kFloat32s);
  op.infer(quant::infer_quantized).lower(quant::lower_quantized).axes(nn::token_axes);
}
