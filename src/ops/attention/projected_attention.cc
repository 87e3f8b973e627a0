// Attention of BERT and GPT in onnxruntime's models: one product makes queries, keys and values for MultiHeadAttention.
// PackedAttention and PackedMultiHeadAttention: the same without padding between sequences.

#include <array>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/work.h"
#include "ops/attention/multi_head.h"

namespace treadle::attention {

namespace {

using namespace fused;  // NOLINT(google-build-using-namespace): helpers of lowerings

// The first inputs of all forms.
enum ProjectedInput : size_t { kInput, kWeights, kBias };
// Indices of further inputs of the forms with padding.
struct InputIndices {
  size_t mask, past, attention_bias, past_length;
};
constexpr size_t kNoInput = SIZE_MAX;
constexpr InputIndices kFloatInputs{3, 4, 5, 6}, kByteInputs{5, 8, kNoInput, kNoInput};
enum ByteInput : size_t { kInputScale = 3, kWeightScale, kInputZero = 6, kWeightZero };

// ---- Checks of weights, for both forms

struct Hidden {
  Dim queries, keys, values;
};

Result<Hidden> hidden_sizes(const InferContext& ctx, int64_t heads) {
  if (heads < 1) return error(Code::kInvalidModel, "attribute num_heads is {}, expected at least 1", heads);
  const auto sizes = ctx.attributes().get_ints("qkv_hidden_sizes");
  const Shape *w = ctx.shape(kWeights), *x = ctx.shape(kInput);
  if (w && (w->size() != 2 || (x && differ((*w)[0], x->back())))) {
    return error(Code::kInvalidArgument, "{} has shape {}, expected as many rows as input {} has columns",
                 ctx.node.version->inputs[kWeights].name, to_string(*w), x ? to_string(*x) : "");
  }
  Hidden h;
  if (!sizes.empty()) {
    if (sizes.size() != 3 || sizes[0] != sizes[1]) {
      return error(Code::kInvalidModel,
                   "attribute qkv_hidden_sizes is {}, expected 3 numbers, the first two of which are equal",
                   to_string(Dims(sizes)));
    }
    const int64_t sum = sizes[0] + sizes[1] + sizes[2];
    if (w && differ((*w)[1], Dim(sum))) {
      return error(Code::kInvalidModel,
                   "attribute qkv_hidden_sizes adds up to {}, expected the number of columns of weights {}", sum,
                   to_string(*w));
    }
    h = {sizes[0], sizes[1], sizes[2]};
  } else if (w) {
    if ((*w)[1].is_known() && (*w)[1].value() % 3 != 0) {
      return error(Code::kInvalidArgument,
                   "{} has shape {}, expected a multiple of 3 columns: as many each for queries, keys and values",
                   ctx.node.version->inputs[kWeights].name, to_string(*w));
    }
    h.queries = h.keys = h.values = floor_div((*w)[1], Dim(3));
  }
  for (const Dim& size : {h.queries, h.values}) {
    if (!size.is_known() || size.value() % heads == 0) continue;
    return error(Code::kInvalidArgument, "rows have {} elements, expected a multiple of attribute num_heads, {}",
                 size.value(), heads);
  }
  const Shape* bias = ctx.shape(kBias);
  if (bias && w && (bias->size() != 1 || differ((*bias)[0], (*w)[1]))) {
    return error(Code::kInvalidArgument, "bias has shape {}, expected [{}]", to_string(*bias), (*w)[1].to_string());
  }
  return h;
}

const ir::Node* split(LowerContext& ctx, ir::Value* all) {
  const auto sizes = ctx.attributes().get_ints("qkv_hidden_sizes");
  const auto axis = ir::Attribute::of("axis", -1);
  if (sizes.empty()) return ctx.node("Split", std::array{all}, 3, {axis, ir::Attribute::of("num_outputs", 3)});
  return ctx.node("Split", std::array{all, ctx.constant_int64s({sizes[0], sizes[1], sizes[2]})}, 3, {axis});
}

const ir::Node* projected(LowerContext& ctx) {
  ir::Value* all = ctx.call("MatMul", {ctx.input(kInput), ctx.input(kWeights)});
  if (ctx.has_input(kBias)) all = ctx.call("Add", {all, ctx.input(kBias)});
  return split(ctx, all);
}

// The attributes that MultiHeadAttention has as well.
std::vector<ir::Attribute> handed_on(const ir::Attributes& given) {
  std::vector<ir::Attribute> attributes;
  for (const char* number : {"num_heads", "unidirectional"}) {
    if (given.has(number)) attributes.push_back(ir::Attribute::of(number, given.get_int(number)));
  }
  for (const char* number : {"mask_filter_value", "scale"}) {
    if (given.has(number)) attributes.push_back(ir::Attribute::of(number, given.get_float(number)));
  }
  return attributes;
}

// ---- Attention

Status infer_attention(InferContext& ctx, const InputIndices& at, ElementType type) {
  const int64_t heads = ctx.attributes().get_int("num_heads");
  if (ctx.attributes().get_int("do_rotary", 0) != 0) {
    return error(Code::kNotImplemented, "attribute do_rotary is 1: queries and keys are not rotated here");
  }
  const Shape *x = ctx.shape(kInput), *past = ctx.shape(at.past);
  if (x && x->size() != 3) {
    return error(Code::kInvalidArgument, "input has shape {}, expected [batch,length,size]", to_string(*x));
  }
  TREADLE_ASSIGN(const Hidden hidden, hidden_sizes(ctx, heads));
  const Shape rows = x ? *x : unknown_shape(3);
  TREADLE_TRY(check_mask(ctx, at.mask, rows[0]));
  if (past && (past->size() != 5 || differ((*past)[0], Dim(2)) || differ((*past)[1], rows[0]) ||
               differ((*past)[2], Dim(heads)))) {
    return error(Code::kInvalidArgument, "past has shape {}, expected [2,{},{},past,size]", to_string(*past),
                 rows[0].to_string(), heads);
  }
  ctx.set_output(0, type, {rows[0], rows[1], hidden.values});
  if (ctx.outputs.size() < 2) return {};
  Dim total = rows[1];
  if (ctx.has_input(at.past)) {
    total = past ? (*past)[3] : Dim::unknown();
    if (!ctx.has_input(at.past_length)) total = total + rows[1];
  }
  ctx.set_output(1, type, {int64_t{2}, rows[0], heads, total, floor_div(hidden.queries, Dim(heads))});
  return {};
}

Status infer_projected(InferContext& ctx) {
  return infer_attention(ctx, kFloatInputs, ctx.element(kInput));
}

Status attend(LowerContext& ctx, const InputIndices& at, const ir::Node& factors) {
  const auto past = [&](int64_t i) -> ir::Value* {
    if (!ctx.has_input(at.past)) return nullptr;
    return ctx.call("Gather", {ctx.input(at.past), ctx.constant_int64(i)}, {ir::Attribute::of("axis", 0)});
  };
  const bool shares = ctx.attributes().get_int("past_present_share_buffer", 0) != 0;
  ir::Value* past_length = shares ? optional_input(ctx, at.past_length) : nullptr;
  const ir::Node* made =
      ctx.node("MultiHeadAttention",
               std::array<ir::Value*, 9>{factors.outputs[0], factors.outputs[1], factors.outputs[2], nullptr,
                                         optional_input(ctx, at.mask), optional_input(ctx, at.attention_bias), past(0),
                                         past(1), past_length},
               3, handed_on(ctx.attributes()), "com.microsoft");
  ctx.set_output(0, made->outputs[0]);
  if (ctx.node().output_count < 2) return {};
  ctx.set_output(1, concat(ctx, {unsqueeze(ctx, made->outputs[1], {0}), unsqueeze(ctx, made->outputs[2], {0})}));
  return {};
}

Status lower_projected(LowerContext& ctx) {
  return attend(ctx, kFloatInputs, *projected(ctx));
}

// ---- QAttention: a product of bytes makes queries, keys and values

Status infer_quantized(InferContext& ctx) {
  if (ctx.attributes().get_int("past_present_share_buffer", 0) != 0) {
    return error(Code::kNotImplemented, "attribute past_present_share_buffer is 1, but no input says how long past is");
  }
  return infer_attention(ctx, kByteInputs, ctx.element(kBias));
}

Status lower_quantized(LowerContext& ctx) {
  const ElementType type = ctx.type(kBias).element;
  const auto as = [&](ir::Value* v, ElementType to) {
    return type == ElementType::kFloat ? v : ctx.call("Cast", {v}, {ir::Attribute::of("to", static_cast<int64_t>(to))});
  };
  const auto as_float = [&](size_t i) { return as(ctx.input(i), ElementType::kFloat); };
  ir::Value* all =
      ctx.call("ScaledMatMulInteger",
               {ctx.input(kInput), ctx.input(kWeights), optional_input(ctx, kInputZero),
                optional_input(ctx, kWeightZero), as_float(kInputScale), as_float(kWeightScale), as_float(kBias)},
               {}, "treadle");
  return attend(ctx, kByteInputs, *split(ctx, as(all, type)));
}

// Batch entries are independent. In caches, they follow the axis of the pair of keys and values.
Status projected_axes(AxisContext& c) {
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (!c.present(i)) continue;
    const bool of_entries =
        i == kInput || i == kFloatInputs.mask || i == kFloatInputs.past || i == kFloatInputs.attention_bias;
    if (c.in(i) > (i == kFloatInputs.past ? 1 : 0)) return looks_along("it relates its positions to all others");
    if (!of_entries && c.runs_along(i)) return looks_along("it is one for all entries");
    if (i == kFloatInputs.mask && c.rank(i) == 1) return looks_along("its mask has several numbers for each entry");
    if (i == kFloatInputs.past && c.in(i) == 0) return looks_along("its past is of keys and values along it");
    const bool alike = !of_entries || (i == kFloatInputs.attention_bias && c.size(i, 0).is_known(1));
    if (!alike && !c.runs_along(i)) return looks_along("not all of its inputs run along it");
  }
  TREADLE_TRY(c.give(0, 0));
  return c.give(1, 1);
}

Work projected_work(const ir::Node& node) {
  const double rows = work::elements_of(node.inputs[kInput]);
  const double length = work::size_of(node.inputs[kInput], 2);
  return {.flops =
              2 * rows * work::size_of(node.inputs[kWeights], 1) + 4 * work::elements_of(node.outputs[0]) * length};
}

// ---- Without padding

// Indices of the inputs of the packed forms.
struct PackedInputIndices {
  size_t offsets, ends, attention_bias;
};
constexpr PackedInputIndices kPackedAttention{3, 4, 5}, kPackedMultiHead{4, 5, 6};

Status check_packed(const InferContext& ctx, const PackedInputIndices& at, size_t rank) {
  const Shape *offsets = ctx.shape(at.offsets), *ends = ctx.shape(at.ends);
  if (offsets && offsets->size() != 2) {
    return error(Code::kInvalidArgument, "token_offset has shape {}, expected [batch,length]", to_string(*offsets));
  }
  if (ends && (ends->size() != 1 || (offsets && differ((*ends)[0], (*offsets)[0] + Dim(1))))) {
    return error(Code::kInvalidArgument, "cumulative_sequence_length has shape {}, expected [{} + 1]", to_string(*ends),
                 offsets ? (*offsets)[0].to_string() : "batch");
  }
  if (const Shape* x = ctx.shape(0); x && x->size() != rank) {
    return error(Code::kInvalidArgument, "{} has shape {}, expected {} dimensions, the first of which is of tokens",
                 ctx.node.version->inputs[0].name, to_string(*x), rank);
  }
  return check_tokens(ctx, at.offsets);
}

Status infer_packed(InferContext& ctx) {
  TREADLE_TRY(check_packed(ctx, kPackedAttention, 2));
  TREADLE_ASSIGN(const Hidden hidden, hidden_sizes(ctx, ctx.attributes().get_int("num_heads")));
  const Shape rows = ctx.shape(0) ? *ctx.shape(0) : unknown_shape(2);
  ctx.set_output(0, ctx.element(0), {rows[0], hidden.values});
  return {};
}

Status infer_packed_multi_head(InferContext& ctx) {
  const bool nested = !ctx.has_input(1);
  if (nested != !ctx.has_input(2)) return error(Code::kInvalidModel, "key and value are used together or not at all");
  TREADLE_TRY(check_packed(ctx, kPackedMultiHead, nested ? 4 : 2));
  const Shape *q = ctx.shape(0), *v = ctx.shape(2);
  Shape out = unknown_shape(2);
  if (q) out[0] = (*q)[0];
  if (nested && q) out[1] = (*q)[1] * (*q)[3];
  if (!nested && v) out[1] = v->back();
  ctx.set_output(0, ctx.element(0), std::move(out));
  return {};
}

// Converts [tokens, size] to [batch, length, size] with zeros as padding, and back.
class Padding {
 public:
  Padding(LowerContext& ctx, const PackedInputIndices& at) : ctx_(ctx), offsets_(as_int64(ctx, ctx.input(at.offsets))) {
    ir::Value* ends = ctx.input(at.ends);
    ir::Value* tokens = size_of(ctx, ctx.input(0), 0);
    rows_ = ctx.call("Reshape", {offsets_, ctx.constant_int64s({-1})});
    rows_ = slice(ctx, rows_, ctx.constant_int64s({0}), tokens, 0);
    ir::Value *one = ctx.constant_int64s({1}), *most = ctx.constant_int64s({INT64_MAX});
    lengths_ = ctx.call("Sub", {slice(ctx, ends, one, most, 0),
                                slice(ctx, ends, ctx.constant_int64s({0}), ctx.constant_int64s({-1}), 0)});
  }

  ir::Value* lengths() const { return lengths_; }

  ir::Value* restored(ir::Value* tokens) {
    ir::Value* padded = ctx_.call("ReduceProd", {ctx_.call("Shape", {offsets_})});
    ir::Value* shape = concat(ctx_, {padded, size_of(ctx_, tokens, 1)});
    ir::Value* zeros = ctx_.call("Expand", {ctx_.number(0, ctx_.type(0).element), shape});
    ir::Value* rows = ctx_.call("ScatterND", {zeros, unsqueeze(ctx_, rows_, {1}), tokens});
    return ctx_.call("Reshape", {rows, concat(ctx_, {ctx_.call("Shape", {offsets_}), ctx_.constant_int64s({-1})})});
  }

  ir::Value* removed(ir::Value* padded) {
    ir::Value* rows =
        ctx_.call("Reshape", {padded, concat(ctx_, {ctx_.constant_int64s({-1}), size_of(ctx_, padded, -1)})});
    return ctx_.call("Gather", {rows, rows_});
  }

 private:
  LowerContext& ctx_;
  ir::Value* offsets_;
  ir::Value *rows_, *lengths_;
};

void attend_packed(LowerContext& ctx, const PackedInputIndices& at, std::array<ir::Value*, 3> factors,
                   ir::Value* bias) {
  Padding padding(ctx, at);
  for (ir::Value*& factor : factors) factor = padding.restored(factor);
  ir::Value* y =
      ctx.call("MultiHeadAttention",
               {factors[0], factors[1], factors[2], bias, padding.lengths(), optional_input(ctx, at.attention_bias)},
               handed_on(ctx.attributes()), "com.microsoft");
  ctx.set_output(0, padding.removed(y));
}

Status lower_packed(LowerContext& ctx) {
  const ir::Node* factors = projected(ctx);
  attend_packed(ctx, kPackedAttention, {factors->outputs[0], factors->outputs[1], factors->outputs[2]}, nullptr);
  return {};
}

Status lower_packed_multi_head(LowerContext& ctx) {
  std::array<ir::Value*, 3> factors{};
  for (size_t i = 0; i < 3; ++i) {
    if (ctx.has_input(1)) {
      factors[i] = ctx.input(i);
      continue;
    }
    ir::Value* part =
        ctx.call("Gather", {ctx.input(0), ctx.constant_int64(static_cast<int64_t>(i))}, {ir::Attribute::of("axis", 2)});
    factors[i] = ctx.call("Reshape", {part, ctx.constant_int64s({0, -1})});
  }
  attend_packed(ctx, kPackedMultiHead, factors, optional_input(ctx, 3));
  return {};
}

constexpr const char* kTokens = "its tokens are those of all sequences";

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(Attention, "com.microsoft") {
  op.since(1)
      .in("input", "T")
      .in("weights", "T")
      .in("bias", "T", Arity::kOptional)
      .in("mask_index", "M", Arity::kOptional)
      .in("past", "T", Arity::kOptional)
      .in("attention_bias", "T", Arity::kOptional)
      .in("past_sequence_length", "M", Arity::kOptional)
      .out("output", "T")
      .out("present", "T", Arity::kOptional)
      .optional("do_rotary", ir::AttributeKind::kInt)
      .optional("mask_filter_value", ir::AttributeKind::kFloat)
      .required("num_heads", ir::AttributeKind::kInt)
      .optional("past_present_share_buffer", ir::AttributeKind::kInt)
      .optional("qkv_hidden_sizes", ir::AttributeKind::kInts)
      .optional("rotary_embedding_dim", ir::AttributeKind::kInt)
      .optional("scale", ir::AttributeKind::kFloat)
      .attr("unidirectional", 0)
      .type("T", types::kFloatsTo32)
      .type("M", types::kInt32s);
  op.infer(attention::infer_projected)
      .lower(attention::lower_projected)
      .can_fail()
      .axes(attention::projected_axes)
      .work(attention::projected_work);
}

TREADLE_OP(QAttention, "com.microsoft") {
  op.since(1)
      .in("input", "T1")
      .in("weight", "T2")
      .in("bias", "T3")
      .in("input_scale", "T3")
      .in("weight_scale", "T3")
      .in("mask_index", "T4", Arity::kOptional)
      .in("input_zero_point", "T1", Arity::kOptional)
      .in("weight_zero_point", "T2", Arity::kOptional)
      .in("past", "T3", Arity::kOptional)
      .out("output", "T3")
      .out("present", "T3", Arity::kOptional)
      .optional("do_rotary", ir::AttributeKind::kInt)
      .optional("mask_filter_value", ir::AttributeKind::kFloat)
      .required("num_heads", ir::AttributeKind::kInt)
      .optional("past_present_share_buffer", ir::AttributeKind::kInt)
      .optional("scale", ir::AttributeKind::kFloat)
      .attr("unidirectional", 0)
      .type("T1", types::kBytes)
      .type("T2", types::kBytes)
      .type("T3", tensors(ElementType::kFloat, ElementType::kFloat16))
      .type("T4", types::kInt32s);
  op.infer(attention::infer_quantized)
      .lower(attention::lower_quantized)
      .can_fail()
      .no_axes("its factors lie between scales")
      .work(attention::projected_work);
}

TREADLE_OP(PackedAttention, "com.microsoft") {
  op.since(1)
      .in("input", "T")
      .in("weights", "T")
      .in("bias", "T")
      .in("token_offset", "M")
      .in("cumulative_sequence_length", "M")
      .in("attention_bias", "T", Arity::kOptional)
      .out("output", "T")
      .required("num_heads", ir::AttributeKind::kInt)
      .optional("qkv_hidden_sizes", ir::AttributeKind::kInts)
      .optional("scale", ir::AttributeKind::kFloat)
      .type("T", tensors(ElementType::kFloat, ElementType::kFloat16))
      .type("M", types::kInt32s);
  op.infer(attention::infer_packed).lower(attention::lower_packed).can_fail().no_axes(attention::kTokens);
}

TREADLE_OP(PackedMultiHeadAttention, "com.microsoft") {
  op.since(1)
      .in("query", "T")
      .in("key", "T", Arity::kOptional)
      .in("value", "T", Arity::kOptional)
      .in("bias", "T", Arity::kOptional)
      .in("token_offset", "M")
      .in("cumulative_sequence_length", "M")
      .in("attention_bias", "T", Arity::kOptional)
      .out("output", "T")
      .optional("mask_filter_value", ir::AttributeKind::kFloat)
      .required("num_heads", ir::AttributeKind::kInt)
      .optional("scale", ir::AttributeKind::kFloat)
      .type("T", tensors(ElementType::kFloat, ElementType::kFloat16))
      .type("M", types::kInt32s);
  op.infer(attention::infer_packed_multi_head)
      .lower(attention::lower_packed_multi_head)
      .can_fail()
      .no_axes(attention::kTokens);
}
