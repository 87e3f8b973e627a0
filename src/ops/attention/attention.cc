// Attention: inference and preparation.

#include "ops/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "op/axis_rules.h"
#include "op/gemm.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/work.h"
#include "ops/costs.h"

namespace treadle::attention {

Heads Heads::of(const Operand& operand, int64_t heads_if_packed) {
  const Dims& d = operand.dims;
  Heads h;
  h.type = operand.type;
  if (d.size() == 4) {
    h.heads = d[1];
    h.length = d[2];
    h.size = d[3];
    h.head_stride = h.length * h.size;
    h.row_stride = h.size;
  } else {
    h.heads = heads_if_packed;
    h.length = d[1];
    h.size = d[2] / heads_if_packed;
    h.head_stride = h.size;
    h.row_stride = d[2];
  }
  h.batch_stride = h.heads * h.length * h.size;
  return h;
}

namespace {

// ---- Inference

// The sizes of Q, K or V, packed or not.
struct HeadShape {
  Dim batch, heads, length, size;
};

Result<HeadShape> head_shape(const InferContext& ctx, size_t i, const char* attribute) {
  static constexpr const char* kNames[] = {"Q", "K", "V"};
  const Shape* shape = ctx.shape(i);
  if (!shape) return HeadShape();
  if (shape->size() == 4) return HeadShape{(*shape)[0], (*shape)[1], (*shape)[2], (*shape)[3]};
  if (shape->size() != 3) {
    return error(Code::kInvalidArgument, "{} has shape {}, expected 3 or 4 dimensions", kNames[i], to_string(*shape));
  }
  const int64_t heads = ctx.attributes().get_int(attribute, 0);
  if (heads < 1) {
    return error(Code::kInvalidModel,
                 "{} has shape {}, expected attribute {}, which says how many heads are packed in it", kNames[i],
                 to_string(*shape), attribute);
  }
  const Dim& width = (*shape)[2];
  if (width.is_known() && width.value() % heads != 0) {
    return error(Code::kInvalidArgument, "{} has shape {}, expected a last axis of {} heads of equal size", kNames[i],
                 to_string(*shape), heads);
  }
  return HeadShape{(*shape)[0], Dim(heads), (*shape)[1], floor_div(width, Dim(heads))};
}

struct Shapes {
  HeadShape q, k, v;
  bool packed = false;
  Dim past = int64_t{0};
};

Status check_agreement(const InferContext& ctx, const Shapes& s) {
  for (size_t i = 0; i < 3; ++i) {
    const Shape *q = ctx.shape(kQuery), *other = ctx.shape(i);
    if (q && other && q->size() != other->size()) {
      return error(Code::kInvalidArgument, "Q, K and V have shapes {} and {}, expected equal ranks", to_string(*q),
                   to_string(*other));
    }
  }
  if (differ(s.q.batch, s.k.batch) || differ(s.q.batch, s.v.batch) || differ(s.k.heads, s.v.heads) ||
      differ(s.k.length, s.v.length) || differ(s.q.size, s.k.size)) {
    return error(
        Code::kInvalidArgument,
        "Q is {}, K {} and V {}, expected equal batches, Q and K of one size, K and V of equal heads and lengths",
        ctx.input(kQuery).to_string(), ctx.input(kKey).to_string(), ctx.input(kValue).to_string());
  }
  if (s.q.heads.is_known() && s.k.heads.is_known() &&
      (s.k.heads.value() == 0 ? s.q.heads.value() != 0 : s.q.heads.value() % s.k.heads.value() != 0)) {
    return error(Code::kInvalidArgument, "there are {} heads of queries, expected a multiple of the heads of keys, {}",
                 s.q.heads.value(), s.k.heads.value());
  }
  return {};
}

// Documents of earlier versions forbid it as well, but other runtimes accept it in old models.
Status check_packing(const InferContext& ctx) {
  const Shape* q = ctx.shape(kQuery);
  const bool counted = ctx.attributes().has("q_num_heads") || ctx.attributes().has("kv_num_heads");
  if (ctx.version() < 25 || !q || q->size() != 4 || !counted) return {};
  return error(Code::kInvalidModel,
               "attribute q_num_heads or kv_num_heads is given, expected Q of 3 dimensions then, found shape {}",
               to_string(*q));
}

Status check_options(const InferContext& ctx) {
  const int64_t mode = ctx.attributes().get_int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > (ctx.node.op->domain.empty() ? 3 : 4))
    return error(Code::kInvalidModel, "attribute qk_matmul_output_mode is {}, expected 0 to {}", mode,
                 ctx.node.op->domain.empty() ? 3 : 4);
  for (const char* side : {"left_window_size", "right_window_size"}) {
    const int64_t size = ctx.attributes().get_int(side, -1);
    if (size < -1) return error(Code::kInvalidModel, "attribute {} is {}, expected -1 or more", side, size);
  }
  if (ctx.attributes().has("softmax_precision")) {
    const ElementType precision = element_type_from_number(ctx.attributes().get_int("softmax_precision"));
    if (!types::kFloatsBf16.contains(precision)) {
      return error(Code::kInvalidModel, "attribute softmax_precision is {}, expected the number of a float type",
                   ctx.attributes().get_int("softmax_precision"));
    }
  }
  if (ctx.has_input(kPastKey) != ctx.has_input(kPastValue)) {
    return error(Code::kInvalidModel, "past_key and past_value are used together or not at all");
  }
  if (ctx.has_input(kPastKey) && ctx.has_input(kValidLength)) {
    return error(Code::kInvalidModel, "nonpad_kv_seqlen is given, expected no past_key and past_value with it");
  }
  return check_packing(ctx);
}

// Past keys or values [batch, heads, past, size].
Status read_past(const InferContext& ctx, size_t i, const HeadShape& fresh, Dim& past) {
  const Shape* shape = ctx.shape(i);
  if (!shape) {
    if (ctx.has_input(i)) past = Dim::unknown();
    return {};
  }
  if (shape->size() != 4 || differ((*shape)[0], fresh.batch) || differ((*shape)[1], fresh.heads) ||
      differ((*shape)[3], fresh.size)) {
    return error(Code::kInvalidArgument, "{} has shape {}, expected [{},{},past,{}]",
                 i == kPastKey ? "past_key" : "past_value", to_string(*shape), fresh.batch.to_string(),
                 fresh.heads.to_string(), fresh.size.to_string());
  }
  past = (*shape)[2];
  return {};
}

// The mask broadcasts to [batch, heads, queries, keys], but it may cover fewer keys than there are.
Status check_mask(const InferContext& ctx, const Shapes& s, const Dim& total) {
  const Shape* mask = ctx.shape(kMask);
  if (!mask) return {};
  const Dim* full[] = {&s.q.batch, &s.q.heads, &s.q.length, &total};
  bool fits = !mask->empty() && mask->size() <= 4;
  for (size_t i = 0; fits && i < mask->size(); ++i) {
    const Dim &size = (*mask)[mask->size() - 1 - i], &wanted = *full[3 - i];
    if (!size.is_known() || !wanted.is_known()) continue;
    fits = i == 0 ? size.value() <= wanted.value() : size.value() == 1 || size.value() == wanted.value();
  }
  if (fits) return {};
  return error(Code::kInvalidArgument, "attn_mask has shape {}, expected one that broadcasts to [{},{},{},{}]",
               to_string(*mask), s.q.batch.to_string(), s.q.heads.to_string(), s.q.length.to_string(),
               total.to_string());
}

Result<Shapes> read_shapes(const InferContext& ctx) {
  Shapes s;
  TREADLE_ASSIGN(s.q, head_shape(ctx, kQuery, "q_num_heads"));
  TREADLE_ASSIGN(s.k, head_shape(ctx, kKey, "kv_num_heads"));
  TREADLE_ASSIGN(s.v, head_shape(ctx, kValue, "kv_num_heads"));
  TREADLE_TRY(check_agreement(ctx, s));
  s.packed = ctx.shape(kQuery) && ctx.shape(kQuery)->size() == 3;
  Dim past_values = int64_t{0};
  TREADLE_TRY(read_past(ctx, kPastKey, s.k, s.past));
  TREADLE_TRY(read_past(ctx, kPastValue, s.v, past_values));
  if (differ(s.past, past_values)) {
    return error(Code::kInvalidArgument, "past_key holds {} keys and past_value {} values, expected equal numbers",
                 s.past.value(), past_values.value());
  }
  return s;
}

Status infer_attention(InferContext& ctx) {
  TREADLE_TRY(check_options(ctx));
  TREADLE_ASSIGN(const Shapes s, read_shapes(ctx));
  const Dim total = s.past + s.k.length;
  TREADLE_TRY(check_mask(ctx, s, total));
  const Shape* lengths = ctx.shape(kValidLength);
  if (lengths && (lengths->size() != 1 || differ((*lengths)[0], s.q.batch))) {
    return error(Code::kInvalidArgument, "nonpad_kv_seqlen has shape {}, expected [{}]", to_string(*lengths),
                 s.q.batch.to_string());
  }
  const Shape* sinks = ctx.shape(kSink);
  if (sinks && (sinks->size() != 1 || differ((*sinks)[0], s.q.heads))) {
    return error(Code::kInvalidArgument, "head_sink has shape {}, expected [{}]", to_string(*sinks),
                 s.q.heads.to_string());
  }
  const ElementType type = ctx.element(kQuery);
  if (!ctx.shape(kQuery)) {
    ctx.set_output(kResult, type);
  } else if (s.packed) {
    ctx.set_output(kResult, type, {s.q.batch, s.q.length, s.q.heads * s.v.size});
  } else {
    ctx.set_output(kResult, type, {s.q.batch, s.q.heads, s.q.length, s.v.size});
  }
  const auto set = [&](size_t i, ElementType element, Shape shape) {
    if (i < ctx.outputs.size()) ctx.set_output(i, element, std::move(shape));
  };
  set(kPresentKey, ctx.element(kKey), {s.k.batch, s.k.heads, total, s.k.size});
  set(kPresentValue, ctx.element(kValue), {s.v.batch, s.v.heads, total, s.v.size});
  set(kScores, type, {s.q.batch, s.q.heads, s.q.length, total});
  return {};
}

// ---- Preparation

void prepare_cache(const PrepareContext& ctx, const State& s, Cache& c, size_t fresh, size_t past, size_t present,
                   ScratchLayout& scratch) {
  const Operand& operand = ctx.inputs[fresh];
  c.fresh = Heads::of(operand, ctx.attributes().get_int("kv_num_heads", 1));
  if (ctx.has_input(past)) c.past = ctx.inputs[past].dims[2];
  if (ctx.has_output(present)) c.present = s.outputs + static_cast<uint32_t>(present);
  const bool wide = operand.type == s.wide;
  c.in_place = wide && c.past == 0;
  c.in_present = wide && !c.in_place && c.present != 0;
  c.widen = kernels::make_converter(operand.type, s.wide);
  if (!c.in_place && !c.in_present) {
    c.wide = scratch.add(static_cast<size_t>(c.total() * c.fresh.size) * byte_width(s.wide));
  }
}

void prepare_mask(const PrepareContext& ctx, State& s, ScratchLayout& scratch) {
  s.has_mask = ctx.has_input(kMask);
  if (!s.has_mask) return;
  const Operand& mask = ctx.inputs[kMask];
  s.mask_type = mask.type;
  const size_t rank = mask.dims.size();
  s.mask_length = mask.dims[rank - 1];
  int64_t stride = s.mask_length;
  for (size_t i = 1; i < rank; ++i) {
    const int64_t size = mask.dims[rank - 1 - i];
    s.mask_strides[3 - i] = size == 1 ? 0 : stride;
    stride *= size;
  }
  if (mask.type == ElementType::kBool || mask.type == s.wide) return;
  s.widen_mask = kernels::make_converter(mask.type, s.wide);
  s.mask_row = scratch.add(static_cast<size_t>(s.mask_length) * byte_width(s.wide));
}

void read_attributes(const ir::Attributes& attributes, State& s) {
  const double size = static_cast<double>(std::max<int64_t>(s.query.size, 1));  // heads of size 0 have scores of 0
  s.scale = attributes.has("scale") ? static_cast<double>(attributes.get_float("scale")) : 1 / std::sqrt(size);
  s.softcap = static_cast<double>(attributes.get_float("softcap", 0));
  s.causal = attributes.get_int("is_causal", 0) != 0;
  s.last_sees_all = attributes.get_int("last_sees_all", 0) != 0;
  s.left = attributes.get_int("left_window_size", -1);
  s.right = attributes.get_int("right_window_size", -1);
  s.stage = static_cast<Stage>(attributes.get_int("qk_matmul_output_mode", 0));
  s.from_zero = attributes.get_int("from_zero", 0) != 0;
}

// The type of the arithmetic: double if any operand is double, else float, even if softmax_precision names a narrower
// type.
ElementType arithmetic_type(const PrepareContext& ctx) {
  const bool precise = ctx.inputs[kQuery].type == ElementType::kDouble ||
                       ctx.inputs[kValue].type == ElementType::kDouble ||
                       ctx.attributes().get_int("softmax_precision", 0) == static_cast<int64_t>(ElementType::kDouble);
  return precise ? ElementType::kDouble : ElementType::kFloat;
}

// The two products of a block of rows, and the block's scratch.
void prepare_products(State& s, ScratchLayout& scratch) {
  constexpr int64_t kBlockBytes = 128 << 10;  // half of the smallest second-level cache, of 256 KB
  const size_t width = byte_width(s.wide);
  const int64_t total = s.keys.total(),
                rows = s.query.length * (s.query.heads / std::max<int64_t>(1, s.keys.fresh.heads));
  s.block =
      std::clamp(kBlockBytes / std::max<int64_t>(1, total * static_cast<int64_t>(width)), int64_t{8}, int64_t{64});
  s.block = std::min(s.block, std::max<int64_t>(rows, 1));
  s.score_step = total + (s.has_sink ? 1 : 0);
  const ComputeType compute = compute_type(s.wide);
  kernels::GemmShape scores{.m = s.block, .n = total, .k = s.query.size};
  scores.a_row = s.query.type == s.wide ? s.query.step() : s.query.size;
  scores.b_row = 1;
  scores.b_col = s.query.size;
  scores.c_row = s.score_step;
  scores.alpha = s.scale;
  scores.b_packed = s.packs_keys = rows > s.block;
  s.score_plan = kernels::prepare_gemm(compute, scores);
  kernels::GemmShape values{.m = s.block, .n = s.result.size, .k = total};
  values.a_row = s.score_step;
  values.b_row = values.c_row = s.result.size;
  s.value_plan = kernels::prepare_gemm(compute, values);
  const auto bytes = [&](int64_t n) { return static_cast<size_t>(n) * width; };
  s.scores = scratch.add(bytes(s.block * s.score_step));
  if (s.packs_keys) s.packed_keys = scratch.add(s.score_plan.packed_b_bytes);
  if (s.query.type != s.wide) s.query_rows = scratch.add(bytes(s.block * s.query.size));
  if (s.result.type != s.wide) s.result_rows = scratch.add(bytes(s.block * s.result.size));
  s.gemm = scratch.add(std::max(s.score_plan.scratch_bytes, s.value_plan.scratch_bytes));
}

// Estimated time of the query heads that share one head of keys.
double unit_ns(const State& s) {
  const auto rows = static_cast<double>(s.query.length * (s.query.heads / std::max<int64_t>(1, s.keys.fresh.heads)));
  const double scores = rows * static_cast<double>(s.keys.total()) * (s.causal ? 0.5 : 1);
  const double precision = s.wide == ElementType::kDouble ? 2 : 1;
  return scores * precision *
         (costs::kAttentionScoreNs + costs::kAttentionProductNs * static_cast<double>(s.query.size + s.result.size));
}

Status prepare_attention(PrepareContext& ctx) {
  auto* s = ctx.make_state<State>();
  s->outputs = static_cast<uint32_t>(ctx.inputs.size());
  s->scratch = ctx.scratch_operand();
  s->wide = arithmetic_type(ctx);
  const int64_t heads = ctx.attributes().get_int("q_num_heads", 1);
  s->batch = ctx.inputs[kQuery].dims[0];
  s->query = Heads::of(ctx.inputs[kQuery], heads);
  s->result = Heads::of(ctx.outputs[kResult], heads);
  ScratchLayout scratch;
  prepare_cache(ctx, *s, s->keys, kKey, kPastKey, kPresentKey, scratch);
  prepare_cache(ctx, *s, s->values, kValue, kPastValue, kPresentValue, scratch);
  prepare_mask(ctx, *s, scratch);
  read_attributes(ctx.attributes(), *s);
  s->has_lengths = ctx.has_input(kValidLength);
  s->has_sinks = ctx.has_input(kSink);
  s->has_sink = s->has_sinks || ctx.attributes().get_int("smooth_softmax", 0) != 0;
  s->has_scores = ctx.has_output(kScores);
  s->widen_query = kernels::make_converter(s->query.type, s->wide);
  s->narrow_result = kernels::make_converter(s->wide, s->result.type);
  s->narrow_scores = kernels::make_converter(s->wide, s->query.type);
  s->tanh = kernels::elementwise_rows(kernels::ElementwiseOp::kTanh, compute_type(s->wide)).vv;
  prepare_products(*s, scratch);
  s->worker_scratch = scratch.size();
  s->unit_ns = unit_ns(*s);
  ctx.cost_ns = s->unit_ns * static_cast<double>(s->units());
  ctx.scratch_bytes = s->worker_scratch * scratch_parts(s->units(), s->unit_ns, ctx.threads);
  ctx.set_kernel(run_attention, s);
  return {};
}

// Axis 0 of queries, keys, values and caches is the batch. Masks run along it, or are the same for all entries.
Status attention_axes(AxisContext& c) {
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (i == kSink) {
      if (c.runs_along(i)) return looks_along("all of its entries have the same heads");
      continue;
    }
    if (c.in(i) > 0) return looks_along("it relates its positions to all others");
    if (!c.present(i) || c.in(i) == 0) continue;
    const bool alike = i == kMask && (c.rank(i) < 4 || c.size(i, 0).is_known(1));
    if (!alike) return looks_along("not all of its inputs run along it");
  }
  return c.give_all(0);
}

// Two products, over all pairs of queries and keys, and an exponential for each score.
Work attention_work(const ir::Node& node) {
  const ir::Value *q = node.inputs[0], *k = node.inputs[1];
  if (!q->type.is_concrete() || !k->type.is_concrete()) return {};
  const bool packed = q->type.rank() == 3;
  const double heads = packed ? static_cast<double>(node.attributes.get_int("q_num_heads", 1)) : work::size_of(q, 3);
  const double keys =
      work::size_of(k, 2) + (node.inputs.size() > 4 ? (node.inputs[4] ? work::size_of(node.inputs[4], 2) : 0) : 0);
  const double scores = work::size_of(q, packed ? 3 : 4) * heads * work::size_of(q, 2) * keys;
  const double head = work::size_of(q, 1) / (packed ? heads : 1);
  return {.flops = 4 * scores * head, .functions = scores};
}

// What the first version of Attention and SinkAttention have in common.
void add_attention(VersionBuilder& version) {
  version.in("Q", "T1")
      .in("K", "T1")
      .in("V", "T2")
      .in("attn_mask", "U", Arity::kOptional)
      .in("past_key", "T1", Arity::kOptional)
      .in("past_value", "T2", Arity::kOptional)
      .out("Y", "T1")
      .out("present_key", "T1", Arity::kOptional)
      .out("present_value", "T2", Arity::kOptional)
      .out("qk_matmul_output", "T1", Arity::kOptional)
      .attr("is_causal", 0)
      .optional("kv_num_heads", ir::AttributeKind::kInt)
      .optional("q_num_heads", ir::AttributeKind::kInt)
      .attr("qk_matmul_output_mode", 0)
      .optional("scale", ir::AttributeKind::kFloat)
      .attr("softcap", 0.0)
      .type("T1", types::kFloatsBf16)
      .type("T2", types::kFloatsBf16)
      .type("U", types::kNumericBoolBf16);
}

void define_attention(OpBuilder& op) {
  op.infer(infer_attention).prepare(prepare_attention).axes(attention_axes).work(attention_work);
}

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(Attention, "") {
  op.since(23).with(attention::add_attention).optional("softmax_precision", ir::AttributeKind::kInt);
  op.since(24).in("nonpad_kv_seqlen", "tensor(int64)", Arity::kOptional);
  op.since(25).attr("left_window_size", -1).attr("right_window_size", -1);
  attention::define_attention(op);
}

// Attention with the additions of onnxruntime's operators. `head_sink` (with `smooth_softmax`: 0) is the logarithm of a
// number that is added to the sum of a row's exponentials. `from_zero`: if there are more queries than valid keys, the
// first query is at position 0, and the last ones are padding. `last_sees_all`: the last query attends all keys even if
// attention is causal.
TREADLE_OP(SinkAttention, "treadle") {
  op.since(1)
      .with(attention::add_attention)
      .in("nonpad_kv_seqlen", "tensor(int64)", Arity::kOptional)
      .in("head_sink", "T1", Arity::kOptional)
      .attr("from_zero", 0)
      .attr("last_sees_all", 0)
      .attr("left_window_size", -1)
      .attr("right_window_size", -1)
      .attr("smooth_softmax", 0);
  attention::define_attention(op);
}
