// GroupQueryAttention: rotation of queries and keys, caches of keys and values that may be longer than their contents,
// and attention over the contents. It is lowered to an operator for each of these.

#include <array>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/attention/attention.h"
#include "ops/fused/calls.h"

namespace treadle::attention {

namespace {

using namespace fused;  // NOLINT(google-build-using-namespace): helpers of lowerings

enum GroupInput : size_t {
  kQ,
  kK,
  kV,
  kPastK,
  kPastV,
  kSeqlens,
  kTotal,
  kCos,
  kSin,
  kPositions,
  kBias,
  kHeadSink,
  kKScale,
  kVScale,
  kQNorm,
  kKNorm,
};
enum GroupOutput : size_t { kY, kPresentK, kPresentV, kScoresOut };

struct HeadCounts {
  int64_t queries, keys;

  static HeadCounts of(const ir::Attributes& attributes) {
    return {attributes.get_int("num_heads"), attributes.get_int("kv_num_heads")};
  }
};

// ---- Inference

Status check_options(const InferContext& ctx, const HeadCounts& heads) {
  const auto& a = ctx.attributes();
  if (heads.queries < 1 || heads.keys < 1 || heads.queries % heads.keys != 0) {
    return error(Code::kInvalidModel, "there are {} heads of queries, expected a multiple of the heads of keys, {}",
                 heads.queries, heads.keys);
  }
  const int64_t window = a.get_int("local_window_size"), mode = a.get_int("qk_output"), causal = a.get_int("causal");
  if (window == 0 || window < -1) {
    return error(Code::kInvalidModel, "attribute local_window_size is {}, expected -1 or at least 1", window);
  }
  if (causal != 0 && causal != 1) return error(Code::kInvalidModel, "attribute causal is {}, expected 0 or 1", causal);
  if (causal == 0 && window > 0) {
    return error(Code::kInvalidModel, "attribute local_window_size is {}, expected -1 with attribute causal 0", window);
  }
  if (mode < 0 || mode > 2) return error(Code::kInvalidModel, "attribute qk_output is {}, expected 0, 1 or 2", mode);
  for (const char* type : {"k_quant_type", "v_quant_type"}) {
    if (a.get_string(type) == "NONE") continue;
    return error(Code::kNotImplemented, "attribute {} is '{}': caches are not quantised", type, a.get_string(type));
  }
  if (a.get_int("sliding_window_cache") != 0) {
    return error(Code::kNotImplemented, "attribute sliding_window_cache is 1: caches hold the whole sequence");
  }
  for (const auto& [one, other] : {std::pair{kK, kV}, {kPastK, kPastV}, {kQNorm, kKNorm}, {kCos, kSin}}) {
    if (ctx.has_input(one) == ctx.has_input(other)) continue;
    return error(Code::kInvalidModel, "{} and {} are used together or not at all", ctx.node.version->inputs[one].name,
                 ctx.node.version->inputs[other].name);
  }
  if (a.get_int("do_rotary", 0) != 0 && !ctx.has_input(kCos)) {
    return error(Code::kInvalidModel, "attribute do_rotary is 1, but cos_cache and sin_cache are left out");
  }
  return {};
}

// The size of a head, by the width of Q, or of Q, K and V packed in one.
Result<Dim> head_size(const InferContext& ctx, const HeadCounts& heads) {
  const Shape* q = ctx.shape(kQ);
  if (!q) return Dim::unknown();
  const int64_t parts = ctx.has_input(kK) ? heads.queries : heads.queries + 2 * heads.keys;
  if (q->size() != 3 || ((*q)[2].is_known() && (*q)[2].value() % parts != 0)) {
    return error(Code::kInvalidArgument, "query has shape {}, expected [batch,length,{} heads]", to_string(*q), parts);
  }
  return floor_div((*q)[2], Dim(parts));
}

Status check_fresh(const InferContext& ctx, size_t i, const HeadCounts& heads, const Dim& size) {
  const Shape *q = ctx.shape(kQ), *given = ctx.shape(i);
  if (!given || !q) return {};
  const bool fits = given->size() == 3 && !differ((*given)[0], (*q)[0]) && !differ((*given)[1], (*q)[1]) &&
                    !differ((*given)[2], Dim(heads.keys) * size);
  if (fits) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected [{},{},{}]", ctx.node.version->inputs[i].name,
               to_string(*given), (*q)[0].to_string(), (*q)[1].to_string(), (Dim(heads.keys) * size).to_string());
}

Status check_past(const InferContext& ctx, size_t i, const HeadCounts& heads, const Dim& size) {
  const Shape *q = ctx.shape(kQ), *past = ctx.shape(i);
  if (!past) return {};
  const bool fits = past->size() == 4 && (!q || !differ((*past)[0], (*q)[0])) && !differ((*past)[1], Dim(heads.keys)) &&
                    !differ((*past)[3], size);
  if (fits) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected [batch,{},past,{}]", ctx.node.version->inputs[i].name,
               to_string(*past), heads.keys, size.to_string());
}

// Rows of the caches that are returned: as many as in the past, or more if the sequence is longer.
Dim cache_length(const InferContext& ctx, const Dim& total) {
  if (!ctx.has_input(kPastK)) return total;
  const Shape* past = ctx.shape(kPastK);
  if (!past || !(*past)[2].is_known() || !total.is_known()) return Dim::unknown();
  return std::max((*past)[2].value(), total.value());
}

// attention_bias, [batch or 1, heads or 1, queries, keys or fewer].
Status check_bias(const InferContext& ctx, const HeadCounts& heads, const Shape& q, const Dim& length) {
  const Shape* bias = ctx.shape(kBias);
  if (!bias) return {};
  const auto is_one_or = [](const Dim& size, const Dim& other) { return size.is_known(1) || !differ(size, other); };
  const bool fits = bias->size() == 4 && is_one_or((*bias)[0], q[0]) && is_one_or((*bias)[1], Dim(heads.queries)) &&
                    is_one_or((*bias)[2], q[1]) &&
                    !((*bias)[3].is_known() && length.is_known() && (*bias)[3].value() > length.value());
  if (fits) return {};
  return error(Code::kInvalidArgument, "attention_bias has shape {}, expected [{} or 1,{} or 1,{},at most {}]",
               to_string(*bias), q[0].to_string(), heads.queries, q[1].to_string(),
               length.is_known() ? length.to_string() : "the keys");
}

Status infer_group_query(InferContext& ctx) {
  const HeadCounts heads = HeadCounts::of(ctx.attributes());
  TREADLE_TRY(check_options(ctx, heads));
  TREADLE_ASSIGN(const Dim size, head_size(ctx, heads));
  for (const size_t i : {kK, kV}) TREADLE_TRY(check_fresh(ctx, i, heads, size));
  for (const size_t i : {kPastK, kPastV}) TREADLE_TRY(check_past(ctx, i, heads, size));
  const Shape q = ctx.shape(kQ) ? *ctx.shape(kQ) : unknown_shape(3);
  const auto value = ctx.dims_value(kTotal);
  const Dim total = value && value->size() == 1 ? (*value)[0] : Dim::unknown();
  const Dim length = cache_length(ctx, total);
  TREADLE_TRY(check_bias(ctx, heads, q, length));
  const ElementType type = ctx.element(kQ);
  ctx.set_output(kY, type, {q[0], q[1], Dim(heads.queries) * size});
  for (const size_t i : {kPresentK, kPresentV}) {
    if (i < ctx.outputs.size()) ctx.set_output(i, type, {q[0], heads.keys, length, size});
  }
  if (ctx.outputs.size() > kScoresOut) ctx.set_output(kScoresOut, type, {q[0], heads.queries, q[1], total});
  return {};
}

// ---- Lowering

class GroupQuery {
 public:
  explicit GroupQuery(LowerContext& ctx) : ctx_(ctx), heads_(HeadCounts::of(ctx.attributes())) {}

  Status lower() {
    TREADLE_TRY(read_factors());
    length_ = size_of(ctx_, q_, 1);
    total_ = ctx_.call("Reshape", {as_int64(ctx_, ctx_.input(kTotal)), ctx_.constant_int64s({1})});
    lengths_ = ctx_.call("Add", {as_int64(ctx_, ctx_.input(kSeqlens)), ctx_.constant_int64(1)});
    lengths_ = ctx_.call("Reshape", {lengths_, ctx_.constant_int64s({-1})});
    if (ctx_.has_input(kQNorm)) {
      q_ = normalized(q_, kQNorm, heads_.queries);
      k_ = normalized(k_, kKNorm, heads_.keys);
    }
    if (ctx_.attributes().get_int("do_rotary", 0) != 0) {
      const Type& cosines = ctx_.type(kCos);
      const bool is_matrix = cosines.has_shape && cosines.shape.size() == 2;
      if (!cosines.has_shape || (is_matrix && !cosines.shape[1].is_known())) {
        return error(Code::kNotImplemented, "cos_cache has an unknown number of angles, expected a known one");
      }
      if (is_matrix) turned_ = 2 * cosines.shape[1].value();
      ir::Value* positions = this->positions();
      q_ = rotated(q_, positions, heads_.queries);
      k_ = rotated(k_, positions, heads_.keys);
    }
    attend(present(k_, kPastK), present(v_, kPastV));
    return {};
  }

 private:
  Status read_factors() {
    q_ = ctx_.input(kQ);
    if (ctx_.has_input(kK)) {
      k_ = ctx_.input(kK);
      v_ = ctx_.input(kV);
      return {};
    }
    const Type& packed = ctx_.type(kQ);
    if (!packed.has_shape || !packed.shape[2].is_known()) {
      return error(Code::kNotImplemented, "packed queries, keys and values of unknown size");
    }
    const int64_t size = packed.shape[2].value() / (heads_.queries + 2 * heads_.keys);
    ir::Value* parts = ctx_.constant_int64s({heads_.queries * size, heads_.keys * size, heads_.keys * size});
    const ir::Node* split = ctx_.node("Split", std::array{q_, parts}, 3, {ir::Attribute::of("axis", -1)});
    q_ = split->outputs[0];
    k_ = split->outputs[1];
    v_ = split->outputs[2];
    return {};
  }

  // Normalises each head by itself.
  ir::Value* normalized(ir::Value* x, size_t weight, int64_t heads) {
    ir::Value* rows = ctx_.call("Reshape", {x, ctx_.constant_int64s({0, 0, heads, -1})});
    rows = ctx_.call("RMSNormalization", {rows, ctx_.input(weight)},
                     {ir::Attribute::of("epsilon", ctx_.attributes().get_float("qk_norm_epsilon"))});
    return ctx_.call("Reshape", {rows, ctx_.constant_int64s({0, 0, -1})});
  }

  // [batch, length]. In a first prompt, whose entries may be padded at the end, all entries begin at the same position:
  // the first of the given positions, or 0.
  ir::Value* positions() {
    ir::Value* steps = unsqueeze(ctx_, counted(ctx_, length_), {0});
    ir::Value* before = ctx_.call("Max", {ctx_.call("Sub", {lengths_, length_}), ctx_.constant_int64(0)});
    ir::Value* counted_on = ctx_.call("Add", {unsqueeze(ctx_, before, {1}), steps});
    if (!ctx_.has_input(kPositions)) return counted_on;
    ir::Value* given = ctx_.input(kPositions);
    ir::Value* flat = ctx_.call("Reshape", {given, ctx_.constant_int64s({-1})});
    ir::Value* first = slice(ctx_, flat, ctx_.constant_int64s({0}), ctx_.constant_int64s({1}), 0);
    ir::Value* is_prompt = ctx_.call("Equal", {total_, length_});
    return ctx_.call("Where", {is_prompt, ctx_.call("Add", {steps, first}), given});
  }

  ir::Value* rotated(ir::Value* x, ir::Value* positions, int64_t heads) {
    std::vector<ir::Attribute> attributes{
        ir::Attribute::of("num_heads", heads),
        ir::Attribute::of("interleaved", ctx_.attributes().get_int("rotary_interleaved", 0)),
        ir::Attribute::of("rotary_embedding_dim", turned_)};
    return ctx_.call("RotaryEmbedding", {x, ctx_.input(kCos), ctx_.input(kSin), positions}, std::move(attributes));
  }

  ir::Value* present(ir::Value* fresh, size_t past) {
    ir::Value* size = total_;
    if (ctx_.has_input(past)) size = ctx_.call("Max", {size, size_of(ctx_, ctx_.input(past), 2)});
    return ctx_.call("AppendToCache", {optional_input(ctx_, past), fresh, lengths_, size},
                     {ir::Attribute::of("heads", heads_.keys)}, "treadle");
  }

  void attend(ir::Value* keys, ir::Value* values) {
    const auto& given = ctx_.attributes();
    const int64_t window = given.get_int("local_window_size"), mode = given.get_int("qk_output");
    std::vector<ir::Attribute> attributes{
        ir::Attribute::of("is_causal", given.get_int("causal")),
        ir::Attribute::of("softcap", given.get_float("softcap", 0)),
        ir::Attribute::of("left_window_size", window > 0 ? window - 1 : -1),
        ir::Attribute::of("smooth_softmax", std::max<int64_t>(0, given.get_int("smooth_softmax"))),
        ir::Attribute::of("qk_matmul_output_mode",
                          static_cast<int64_t>(mode == 2 ? Stage::kProbabilities : Stage::kAttended)),
        ir::Attribute::of("from_zero", 1),
    };
    if (const float scale = given.get_float("scale", 0); scale != 0) {
      attributes.push_back(ir::Attribute::of("scale", scale));
    }
    ir::Value* queries = ctx_.call("Reshape", {q_, ctx_.constant_int64s({0, 0, heads_.queries, -1})});
    queries = ctx_.call("MoveAxis", {queries}, {ir::Attribute::of("from", 2), ir::Attribute::of("to", 1)}, "treadle");
    const ir::Node* made =
        ctx_.node("SinkAttention",
                  std::array<ir::Value*, 8>{queries, keys, values, optional_input(ctx_, kBias), nullptr, nullptr,
                                            lengths_, optional_input(ctx_, kHeadSink)},
                  mode != 0 ? 4 : 1, std::move(attributes), "treadle");
    ir::Value* y = ctx_.call("MoveAxis", {made->outputs[0]}, {ir::Attribute::of("from", 1), ir::Attribute::of("to", 2)},
                             "treadle");
    ctx_.set_output(kY, ctx_.call("Reshape", {y, ctx_.constant_int64s({0, 0, -1})}));
    ctx_.set_output(kPresentK, keys);
    ctx_.set_output(kPresentV, values);
    if (mode == 0) return;
    ctx_.set_output(kScoresOut, slice(ctx_, made->outputs[3], ctx_.constant_int64s({0}), total_, 3));
  }

  LowerContext& ctx_;
  const HeadCounts heads_;
  ir::Value *q_ = nullptr, *k_ = nullptr, *v_ = nullptr;
  ir::Value* length_ = nullptr;   // of the queries
  ir::Value* total_ = nullptr;    // of the longest sequence
  ir::Value* lengths_ = nullptr;  // of all sequences
  int64_t turned_ = 0;            // elements of a head that are rotated; 0: all
};

Status lower_group_query(LowerContext& ctx) {
  return GroupQuery(ctx).lower();
}

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(GroupQueryAttention, "com.microsoft") {
  op.since(1)
      .in("query", "T")
      .in("key", "T", Arity::kOptional)
      .in("value", "T", Arity::kOptional)
      .in("past_key", "T_CACHE", Arity::kOptional)
      .in("past_value", "T_CACHE", Arity::kOptional)
      .in("seqlens_k", "M")
      .in("total_sequence_length", "M")
      .in("cos_cache", "T", Arity::kOptional)
      .in("sin_cache", "T", Arity::kOptional)
      .in("position_ids", "tensor(int64)", Arity::kOptional)
      .in("attention_bias", "T", Arity::kOptional)
      .in("head_sink", "T", Arity::kOptional)
      .in("k_scale", "T_KV_SCALE", Arity::kOptional)
      .in("v_scale", "T_KV_SCALE", Arity::kOptional)
      .in("q_norm_weight", "T", Arity::kOptional)
      .in("k_norm_weight", "T", Arity::kOptional)
      .out("output", "T")
      .out("present_key", "T_CACHE", Arity::kOptional)
      .out("present_value", "T_CACHE", Arity::kOptional)
      .out("output_qk", "T", Arity::kOptional)
      .attr("causal", 1)
      .optional("do_rotary", ir::AttributeKind::kInt)
      .attr("k_quant_type", "NONE")
      .optional("kv_cache_bit_width", ir::AttributeKind::kInt)
      .required("kv_num_heads", ir::AttributeKind::kInt)
      .attr("local_window_size", -1)
      .required("num_heads", ir::AttributeKind::kInt)
      .attr("qk_norm_epsilon", 1e-06)
      .attr("qk_output", 0)
      .optional("rotary_interleaved", ir::AttributeKind::kInt)
      .optional("scale", ir::AttributeKind::kFloat)
      .attr("sliding_window_cache", 0)
      .attr("smooth_softmax", -1)
      .optional("softcap", ir::AttributeKind::kFloat)
      .attr("v_quant_type", "NONE")
      .type("T", types::kFloatsTo32)
      .type("T_CACHE",
            types::kFloatsTo32 | tensors(ElementType::kUint8, ElementType::kInt8, ElementType::kFloat8e4m3fn))
      .type("T_KV_SCALE", types::kFloat32s)
      .type("M", types::kInt32s);
  op.infer(attention::infer_group_query)
      .lower(attention::lower_group_query)
      .shape_inputs({6})
      .can_fail()
      .no_axes("lengths say how far its entries have come");
}
