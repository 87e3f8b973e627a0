// MultiHeadAttention and DecoderMaskedMultiHeadAttention: Attention with operands packed in several ways, biases,
// integer masks, and caches that may be longer than their contents.

#include <array>
#include <optional>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/attention/attention.h"
#include "ops/attention/multi_head.h"

namespace treadle::attention {

namespace {

using namespace fused;  // NOLINT(google-build-using-namespace): helpers of lowerings

// Indices of the inputs of either operator.
struct InputIndices {
  size_t query = 0, key = 1, value = 2, bias, mask, attention_bias, past_key, past_value, past_length, beams,
         indirection;

  static constexpr InputIndices of(bool decoder) {
    return decoder ? InputIndices{.bias = 10,
                                  .mask = 3,
                                  .attention_bias = 4,
                                  .past_key = 5,
                                  .past_value = 6,
                                  .past_length = 7,
                                  .beams = 8,
                                  .indirection = 9}
                   : InputIndices{.bias = 3,
                                  .mask = 4,
                                  .attention_bias = 5,
                                  .past_key = 6,
                                  .past_value = 7,
                                  .past_length = 8,
                                  .beams = SIZE_MAX,
                                  .indirection = 9};
  }
};
enum MultiHeadOutput : size_t { kY, kPresentK, kPresentV, kQk };

// How queries, keys and values are packed.
enum class Packing : uint8_t {
  kNone,           // [batch, length, hidden] each
  kAll,            // [batch, length, heads, 3, size], or one after the other along the last axis
  kKeysAndValues,  // [batch, length, heads, 2, size]
  kHeads,          // keys and values are [batch, heads, length, size], from the past
};

Packing packing(bool has_key, bool has_value, const Shape* key) {
  if (!has_key) return Packing::kAll;
  if (!has_value) return Packing::kKeysAndValues;
  return key && key->size() == 4 ? Packing::kHeads : Packing::kNone;
}

// ---- Inference

struct Sizes {
  Dim batch, length, keys, size, value_size;  // `keys`: new ones
};

Result<Sizes> read_sizes(const InferContext& ctx, const InputIndices& at, int64_t heads) {
  Sizes s;
  const Shape *q = ctx.shape(at.query), *k = ctx.shape(at.key), *v = ctx.shape(at.value);
  if (!q) return s;
  const Packing how = packing(ctx.has_input(at.key), ctx.has_input(at.value), k);
  const bool nested = how == Packing::kAll && q->size() == 5;
  if (q->size() != 3 && !nested) {
    return error(Code::kInvalidArgument, "query has shape {}, expected [batch,length,hidden]{}", to_string(*q),
                 how == Packing::kAll ? " or [batch,length,heads,3,size]" : "");
  }
  s.batch = (*q)[0];
  s.length = s.keys = (*q)[1];
  const int64_t parts = how == Packing::kAll && !nested ? 3 * heads : heads;
  if (!nested && q->back().is_known() && q->back().value() % parts != 0) {
    return error(Code::kInvalidArgument, "query has shape {}, expected a last axis of {} heads of equal size",
                 to_string(*q), parts);
  }
  s.size = s.value_size = nested ? q->back() : floor_div(q->back(), Dim(parts));
  if (!k) {
    if (how != Packing::kAll) s.keys = s.value_size = Dim::unknown();
    return s;
  }
  const size_t rank = how == Packing::kNone ? 3 : how == Packing::kHeads ? 4 : 5;
  const Dim& width = how == Packing::kNone ? q->back() : s.size;
  if (k->size() != rank || differ((*k)[0], s.batch) || differ(k->back(), width)) {
    return error(Code::kInvalidArgument, "key has shape {}, expected the batch and the width of query {}: {} and {}",
                 to_string(*k), to_string(*q), s.batch.to_string(), width.to_string());
  }
  s.keys = (*k)[how == Packing::kHeads ? 2 : 1];
  if (v) {
    const bool fits =
        v->size() == k->size() && !differ((*v)[0], s.batch) && !differ((*v)[how == Packing::kHeads ? 2 : 1], s.keys);
    if (!fits) {
      return error(Code::kInvalidArgument, "value has shape {}, expected the batch and the length of key {}",
                   to_string(*v), to_string(*k));
    }
    s.value_size = how == Packing::kHeads ? v->back() : floor_div(v->back(), Dim(heads));
  } else if (how != Packing::kKeysAndValues) {
    s.value_size = Dim::unknown();
  }
  return s;
}

Status check_past(const InferContext& ctx, size_t input, const Sizes& s, int64_t heads, const Dim& size) {
  const Shape* past = ctx.shape(input);
  if (!past) return {};
  const bool fits =
      past->size() == 4 && !differ((*past)[0], s.batch) && !differ((*past)[1], Dim(heads)) && !differ((*past)[3], size);
  if (fits) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected [{},{},past,{}]",
               ctx.node.version->inputs[input].name, to_string(*past), s.batch.to_string(), heads, size.to_string());
}

template <bool kDecoder>
Status infer_multi_head(InferContext& ctx) {
  constexpr InputIndices kAt = InputIndices::of(kDecoder);
  const int64_t heads = ctx.attributes().get_int("num_heads");
  if (heads < 1) return error(Code::kInvalidModel, "attribute num_heads is {}, expected at least 1", heads);
  if (ctx.has_input(kAt.past_key) != ctx.has_input(kAt.past_value)) {
    return error(Code::kInvalidModel, "past_key and past_value are used together or not at all");
  }
  TREADLE_ASSIGN(const Sizes s, read_sizes(ctx, kAt, heads));
  TREADLE_TRY(check_mask(ctx, kAt.mask, s.batch));
  const Shape* bias = ctx.shape(kAt.bias);
  const Dim hidden = Dim(heads) * (s.size + s.size + s.value_size);
  if (bias && (bias->size() != 1 || differ((*bias)[0], hidden))) {
    return error(Code::kInvalidArgument, "bias has shape {}, expected [{}]: those of queries, keys and values",
                 to_string(*bias), hidden.to_string());
  }
  const Shape* beams = ctx.shape(kAt.indirection);
  if (beams && (beams->size() != 3 || differ((*beams)[0] * (*beams)[1], s.batch))) {
    return error(Code::kInvalidArgument, "cache_indirection has shape {}, expected [entries,beams,length] of {} beams",
                 to_string(*beams), s.batch.to_string());
  }
  const ElementType type = ctx.element(kAt.query);
  ctx.set_output(kY, type, {s.batch, s.length, Dim(heads) * s.value_size});
  Dim total = s.keys, rows = s.keys;
  if (ctx.has_input(kAt.past_key)) {
    const Shape* past = ctx.shape(kAt.past_key);
    TREADLE_TRY(check_past(ctx, kAt.past_key, s, heads, s.size));
    TREADLE_TRY(check_past(ctx, kAt.past_value, s, heads, s.value_size));
    const Shape* values = ctx.shape(kAt.past_value);
    if (past && values && differ((*past)[2], (*values)[2])) {
      return error(Code::kInvalidArgument, "past_value has shape {}, expected as many rows as past_key {}",
                   to_string(*values), to_string(*past));
    }
    const Dim before = past ? (*past)[2] : Dim::unknown();
    const bool shares = ctx.has_input(kAt.past_length);
    rows = shares ? before : before + s.keys;
    total = shares ? Dim::unknown() : rows;
  }
  if (ctx.outputs.size() > kPresentK) ctx.set_output(kPresentK, type, {s.batch, heads, rows, s.size});
  if (ctx.outputs.size() > kPresentV) ctx.set_output(kPresentV, type, {s.batch, heads, rows, s.value_size});
  if (ctx.outputs.size() > kQk) ctx.set_output(kQk, type, {s.batch, heads, s.length, total});
  return {};
}

// ---- Lowering

class MultiHead {
 public:
  MultiHead(LowerContext& ctx, const InputIndices& at)
      : ctx_(ctx), at_(at), heads_(ctx.attributes().get_int("num_heads")), type_(ctx.type(at.query).element) {}

  Status lower(bool causal) {
    TREADLE_TRY(read_factors());
    TREADLE_TRY(add_biases());
    length_ = size_of(ctx_, q_, 1);
    const bool shares = ctx_.has_input(at_.past_key) && ctx_.has_input(at_.past_length);
    if (shares) {
      extend_caches();
    } else {
      total_ = size_of(ctx_, k_, keys_are_heads_ ? 2 : 1);
      if (ctx_.has_input(at_.past_key)) {
        total_ = ctx_.call("Add", {total_, size_of(ctx_, ctx_.input(at_.past_key), 2)});
      }
      if (keys_are_heads_) q_ = by_heads(q_);
    }
    TREADLE_ASSIGN(ir::Value * mask, masks());
    attend(mask, causal, shares);
    return {};
  }

 private:
  // Part i of [batch, length, heads, parts, size], as [batch, length, heads * size].
  ir::Value* nested(ir::Value* packed, int64_t i) {
    ir::Value* part = ctx_.call("Gather", {packed, ctx_.constant_int64(i)}, {ir::Attribute::of("axis", 3)});
    return ctx_.call("Reshape", {part, ctx_.constant_int64s({0, 0, -1})});
  }

  Status read_factors() {
    const bool has_key = ctx_.has_input(at_.key), has_value = ctx_.has_input(at_.value);
    const Type& q = ctx_.type(at_.query);
    if (!q.has_shape || (has_key && !ctx_.type(at_.key).has_shape)) {
      return error(Code::kNotImplemented, "queries or keys of unknown rank");
    }
    q_ = ctx_.input(at_.query);
    if (has_key) k_ = ctx_.input(at_.key);
    if (has_value) v_ = ctx_.input(at_.value);
    switch (packing(has_key, has_value, has_key ? &ctx_.type(at_.key).shape : nullptr)) {
      case Packing::kNone:
        break;
      case Packing::kHeads:
        keys_are_heads_ = true;
        break;
      case Packing::kKeysAndValues: {
        ir::Value* packed = k_;
        k_ = nested(packed, 0);
        v_ = nested(packed, 1);
        break;
      }
      case Packing::kAll: {
        ir::Value* packed = q_;
        if (q.rank() == 5) {
          q_ = nested(packed, 0);
          k_ = nested(packed, 1);
          v_ = nested(packed, 2);
          break;
        }
        const ir::Node* split = ctx_.node("Split", std::array{packed}, 3,
                                          {ir::Attribute::of("axis", -1), ir::Attribute::of("num_outputs", 3)});
        q_ = split->outputs[0];
        k_ = split->outputs[1];
        v_ = split->outputs[2];
        break;
      }
    }
    return {};
  }

  // Past keys and values contain the biases already.
  Status add_biases() {
    if (!ctx_.has_input(at_.bias)) return {};
    ir::Value *bias = ctx_.input(at_.bias), *begin = ctx_.constant_int64s({0});
    ir::Value** const factors[] = {&q_, &k_, &v_};
    for (size_t i = 0; i < (keys_are_heads_ ? 1u : 3u); ++i) {
      ir::Value* end = ctx_.call("Add", {begin, size_of(ctx_, *factors[i], -1)});
      *factors[i] = ctx_.call("Add", {*factors[i], slice(ctx_, bias, begin, end, 0)});
      begin = end;
    }
    return {};
  }

  ir::Value* by_heads(ir::Value* v) {
    ir::Value* rows = ctx_.call("Reshape", {v, ctx_.constant_int64s({0, 0, heads_, -1})});
    return ctx_.call("MoveAxis", {rows}, {ir::Attribute::of("from", 2), ir::Attribute::of("to", 1)}, "treadle");
  }

  // Past and present share their buffers. past_length says how many rows are filled.
  void extend_caches() {
    ir::Value* past = ctx_.call("Reshape", {as_int64(ctx_, ctx_.input(at_.past_length)), ctx_.constant_int64s({1})});
    total_ = ctx_.call("Add", {past, size_of(ctx_, k_, 1)});
    lengths_ = ctx_.call("Expand", {total_, size_of(ctx_, q_, 0)});
    k_ = extended(k_, at_.past_key);
    v_ = extended(v_, at_.past_value);
    q_ = by_heads(q_);
    keys_are_heads_ = true;
  }

  ir::Value* extended(ir::Value* fresh, size_t past) {
    return ctx_.call("AppendToCache", {ctx_.input(past), fresh, lengths_, size_of(ctx_, ctx_.input(past), 2)},
                     {ir::Attribute::of("heads", heads_)}, "treadle");
  }

  Result<ir::Value*> masks() {
    ir::Value* mask = optional_input(ctx_, at_.attention_bias);
    if (!ctx_.has_input(at_.mask)) return mask;
    const Dim batch = ctx_.type(at_.query).shape[0];
    TREADLE_ASSIGN(ir::Value * added, added_mask(ctx_, at_.mask, {total_, length_, batch}));
    return sum_of(ctx_, added, mask ? cast(ctx_, mask, type_, ElementType::kFloat) : nullptr);
  }

  // Keys or values [batch, heads, rows, size]: row t comes from the beam of the batch entry that `cache_indirection`
  // names.
  ir::Value* redirected(ir::Value* rows) {
    ir::Value* beams = as_int64(ctx_, ctx_.input(at_.indirection));
    ir::Value* width = ctx_.call("Shape", {beams}, {ir::Attribute::of("start", 1), ir::Attribute::of("end", 2)});
    ir::Value* entries = ctx_.call("Mul", {counted(ctx_, size_of(ctx_, beams, 0)), width});
    ir::Value* from = ctx_.call("Add", {beams, unsqueeze(ctx_, entries, {1, 2})});
    from = ctx_.call("Reshape", {from, concat(ctx_, {ctx_.constant_int64s({-1}), size_of(ctx_, beams, 2)})});
    ir::Value* end = ctx_.call("Sub", {total_, ctx_.constant_int64s({1})});
    from = slice(ctx_, from, ctx_.constant_int64s({0}), end, 1);  // the newest row is the beam's own
    ir::Value* own = ctx_.call("Expand", {unsqueeze(ctx_, counted(ctx_, size_of(ctx_, from, 0)), {1}),
                                          concat(ctx_, {size_of(ctx_, from, 0), size_of(ctx_, rows, 2)})});
    own = slice(ctx_, own, end, size_of(ctx_, rows, 2), 1);
    from = concat(ctx_, {from, own}, 1);
    ir::Value* places = unsqueeze(ctx_, counted(ctx_, size_of(ctx_, rows, 2)), {0});
    places = ctx_.call("Expand", {places, ctx_.call("Shape", {from})});
    ir::Value* index = concat(ctx_, {unsqueeze(ctx_, from, {2}), unsqueeze(ctx_, places, {2})}, 2);
    const auto move = [&](ir::Value* v, int64_t to, int64_t at) {
      return ctx_.call("MoveAxis", {v}, {ir::Attribute::of("from", to), ir::Attribute::of("to", at)}, "treadle");
    };
    return move(ctx_.call("GatherND", {move(rows, 1, 2), index}), 2, 1);
  }

  void attend(ir::Value* mask, bool causal, bool shares) {
    // onnxruntime masks all rows of scores except the last. That matters if there are more keys than queries.
    std::vector<ir::Attribute> attributes{ir::Attribute::of("is_causal", causal ? 1 : 0),
                                          ir::Attribute::of("last_sees_all", causal ? 1 : 0),
                                          ir::Attribute::of("qk_matmul_output_mode", 4)};
    if (const float scale = ctx_.attributes().get_float("scale", 0); scale != 0) {
      attributes.push_back(ir::Attribute::of("scale", scale));
    }
    if (!keys_are_heads_) {
      attributes.push_back(ir::Attribute::of("q_num_heads", heads_));
      attributes.push_back(ir::Attribute::of("kv_num_heads", heads_));
    }
    ir::Value *keys = k_, *values = v_;
    if (shares && ctx_.has_input(at_.indirection)) {
      keys = redirected(keys);
      values = redirected(values);
    }
    const bool appends = ctx_.has_input(at_.past_key) && !shares;
    const ir::Node* made =
        ctx_.node("SinkAttention",
                  std::array<ir::Value*, 7>{q_, keys, values, mask, appends ? ctx_.input(at_.past_key) : nullptr,
                                            appends ? ctx_.input(at_.past_value) : nullptr, lengths_},
                  4, std::move(attributes), "treadle");
    ir::Value* y = made->outputs[0];
    if (keys_are_heads_) {
      y = ctx_.call("MoveAxis", {y}, {ir::Attribute::of("from", 1), ir::Attribute::of("to", 2)}, "treadle");
      y = ctx_.call("Reshape", {y, ctx_.constant_int64s({0, 0, -1})});
    }
    ctx_.set_output(kY, y);
    ctx_.set_output(kPresentK, shares ? k_ : made->outputs[1]);
    ctx_.set_output(kPresentV, shares ? v_ : made->outputs[2]);
    ir::Value* qk = made->outputs[3];
    ctx_.set_output(kQk, shares ? slice(ctx_, qk, ctx_.constant_int64s({0}), total_, 3) : qk);
  }

  LowerContext& ctx_;
  const InputIndices at_;
  const int64_t heads_;
  const ElementType type_;
  ir::Value *q_ = nullptr, *k_ = nullptr, *v_ = nullptr;
  ir::Value *length_ = nullptr, *total_ = nullptr;  // of queries, and of all keys: one element each
  ir::Value* lengths_ = nullptr;                    // of all sequences, if caches are longer
  bool keys_are_heads_ = false;
};

template <bool kDecoder>
Status lower_multi_head(LowerContext& ctx) {
  const bool causal = !kDecoder && ctx.attributes().get_int("unidirectional") != 0;
  return MultiHead(ctx, InputIndices::of(kDecoder)).lower(causal);
}

// Batch entries are independent. Biases and masks may be the same for all.
template <bool kDecoder>
Status multi_head_axes(AxisContext& c) {
  constexpr InputIndices kAt = InputIndices::of(kDecoder);
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (!c.present(i)) continue;
    if (c.in(i) > 0) return looks_along("it relates its positions to all others");
    const bool shared = i == kAt.bias || i == kAt.past_length || i == kAt.beams;
    const bool alike = shared || (i == kAt.attention_bias && c.size(i, 0).is_known(1));
    if (i == kAt.indirection) return looks_along("its entries read each other's rows");
    if (i == kAt.mask && c.rank(i) == 1) return looks_along("its mask has several numbers for each entry");
    if (shared && c.runs_along(i)) return looks_along("it is one for all entries");
    if (!alike && !c.runs_along(i)) return looks_along("not all of its inputs run along it");
  }
  return c.give_all(0);
}

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(MultiHeadAttention, "com.microsoft") {
  op.since(1)
      .in("query", "T")
      .in("key", "T", Arity::kOptional)
      .in("value", "T", Arity::kOptional)
      .in("bias", "T", Arity::kOptional)
      .in("key_padding_mask", "M", Arity::kOptional)
      .in("attention_bias", "T", Arity::kOptional)
      .in("past_key", "T", Arity::kOptional)
      .in("past_value", "T", Arity::kOptional)
      .in("past_sequence_length", "M", Arity::kOptional)
      .in("cache_indirection", "M", Arity::kOptional)
      .out("output", "T")
      .out("present_key", "T", Arity::kOptional)
      .out("present_value", "T", Arity::kOptional)
      .out("qk", "QK", Arity::kOptional)
      .optional("mask_filter_value", ir::AttributeKind::kFloat)
      .required("num_heads", ir::AttributeKind::kInt)
      .optional("scale", ir::AttributeKind::kFloat)
      .attr("unidirectional", 0)
      .type("T", types::kFloatsTo32)
      .type("QK", types::kFloatsTo32)
      .type("M", types::kInt32s);
  op.infer(attention::infer_multi_head<false>)
      .lower(attention::lower_multi_head<false>)
      .can_fail()
      .axes(attention::multi_head_axes<false>);
}

TREADLE_OP(DecoderMaskedMultiHeadAttention, "com.microsoft") {
  op.since(1)
      .in("query", "T")
      .in("key", "T", Arity::kOptional)
      .in("value", "T", Arity::kOptional)
      .in("mask_index", "M", Arity::kOptional)
      .in("attention_bias", "T", Arity::kOptional)
      .in("past_key", "T", Arity::kOptional)
      .in("past_value", "T", Arity::kOptional)
      .in("past_sequence_length", "M", Arity::kOptional)
      .in("beam_width", "M", Arity::kOptional)
      .in("cache_indirection", "M", Arity::kOptional)
      .in("bias", "T", Arity::kOptional)
      .out("output", "T")
      .out("present_key", "T", Arity::kOptional)
      .out("present_value", "T", Arity::kOptional)
      .out("qk", "QK", Arity::kOptional)
      .optional("mask_filter_value", ir::AttributeKind::kFloat)
      .required("num_heads", ir::AttributeKind::kInt)
      .optional("output_qk", ir::AttributeKind::kInt)
      .optional("past_present_share_buffer", ir::AttributeKind::kInt)
      .optional("scale", ir::AttributeKind::kFloat)
      .type("T", tensors(ElementType::kFloat, ElementType::kFloat16))
      .type("QK", tensors(ElementType::kFloat, ElementType::kFloat16))
      .type("M", types::kInt32s);
  op.infer(attention::infer_multi_head<true>)
      .lower(attention::lower_multi_head<true>)
      .can_fail()
      .axes(attention::multi_head_axes<true>);
}
