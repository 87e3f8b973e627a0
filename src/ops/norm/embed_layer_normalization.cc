// EmbedLayerNormalization: sums and normalises embeddings of words, positions and segments. In its quantised form rows
// are looked up as bytes, so that no table is dequantised as a whole.

#include <array>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/fused/calls.h"

namespace treadle::norm {

namespace {

using fused::as_scalar;

// Indices of the inputs of both forms.
struct InputIndices {
  size_t ids = 0, segment_ids = 1, words = 2, positions = 3, segments = 4, gamma = 5, beta = 6, mask = 7;
  size_t scales = 0, zero_points = 0;  // of words, positions, segments, gamma and beta; 0: none
  size_t position_ids = 8;

  static constexpr InputIndices of(bool quantized) {
    return quantized ? InputIndices{.scales = 8, .zero_points = 13, .position_ids = SIZE_MAX} : InputIndices{};
  }
};

enum Output : size_t { kResult, kMaskIndex, kSum };

Status check_rank(const InferContext& ctx, size_t i, size_t rank) {
  const Shape* shape = ctx.shape(i);
  if (!shape || shape->size() == rank) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected {}", ctx.node.version->inputs[i].name,
               to_string(*shape), rank == 1 ? "1 dimension" : "2 dimensions");
}

Status check_ids(const InferContext& ctx, size_t i, const Shape& ids, bool may_repeat) {
  const Shape* shape = ctx.shape(i);
  if (!shape) return {};
  const bool fits = shape->size() == 2 && !differ((*shape)[1], ids[1]) &&
                    (!differ((*shape)[0], ids[0]) || (may_repeat && (*shape)[0].is_known(1)));
  if (fits) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected {}", ctx.node.version->inputs[i].name,
               to_string(*shape), to_string(ids));
}

Status check_tables(const InferContext& ctx, const InputIndices& at, const Dim& hidden) {
  for (const size_t i : {at.words, at.positions, at.segments, at.gamma, at.beta}) {
    TREADLE_TRY(check_rank(ctx, i, i < at.gamma ? 2 : 1));
    if (const Shape* shape = ctx.shape(i); shape && differ(shape->back(), hidden)) {
      return error(Code::kInvalidArgument, "{} has shape {}, expected rows as long as those of {}: {}",
                   ctx.node.version->inputs[i].name, to_string(*shape), ctx.node.version->inputs[at.words].name,
                   hidden.to_string());
    }
  }
  if (ctx.has_input(at.segments) != ctx.has_input(at.segment_ids)) {
    return error(Code::kInvalidModel, "segment_ids and segment_embedding are used together or not at all");
  }
  constexpr size_t kSegments = 2;  // index among scales and zero points
  for (const size_t first : {at.scales, at.zero_points}) {
    if (first == 0 || !ctx.has_input(at.segments) || ctx.has_input(first + kSegments)) continue;
    return error(Code::kInvalidModel, "{} is missing, but segment_embedding is there",
                 ctx.node.version->inputs[first + kSegments].name);
  }
  return {};
}

template <bool kQuantized>
Status infer_embedding(InferContext& ctx) {
  constexpr InputIndices kAt = InputIndices::of(kQuantized);
  TREADLE_TRY(check_rank(ctx, kAt.ids, 2));
  const ElementType type = kQuantized ? ElementType::kFloat : ctx.element(kAt.words);
  const Shape *ids = ctx.shape(kAt.ids), *words = ctx.shape(kAt.words);
  const Dim hidden = words && !words->empty() ? words->back() : Dim::unknown();
  TREADLE_TRY(check_tables(ctx, kAt, hidden));
  if (ids) {
    TREADLE_TRY(check_ids(ctx, kAt.segment_ids, *ids, false));
    TREADLE_TRY(check_ids(ctx, kAt.mask, *ids, false));
    TREADLE_TRY(check_ids(ctx, kAt.position_ids, *ids, true));
  }
  const Shape rows = ids ? *ids : unknown_shape(2);
  for (const size_t i : {kResult, kSum}) {
    if (i < ctx.outputs.size()) ctx.set_output(i, type, {rows[0], rows[1], hidden});
  }
  if (ctx.outputs.size() > kMaskIndex) ctx.set_output(kMaskIndex, ElementType::kInt32, {rows[0]});
  return {};
}

// Dequantises rows of a table: k counts words, positions, segments, gamma and beta.
ir::Value* dequantized(LowerContext& ctx, const InputIndices& at, size_t k, ir::Value* rows) {
  if (at.scales == 0) return rows;
  ir::Value* scale = as_scalar(ctx, ctx.input(at.scales + k));
  return ctx.call("DequantizeLinear", {rows, scale, as_scalar(ctx, ctx.input(at.zero_points + k))});
}

ir::Value* looked_up(LowerContext& ctx, const InputIndices& at, size_t k, size_t table, size_t ids) {
  return dequantized(ctx, at, k, ctx.call("Gather", {ctx.input(table), ctx.input(ids)}));
}

// For each entry, how many elements of the mask are 1.
ir::Value* mask_index(LowerContext& ctx, const InputIndices& at) {
  const auto to = ir::Attribute::of("to", static_cast<int64_t>(ElementType::kInt32));
  ir::Value* kept = ctx.call("Sub", {ctx.input(at.ids), ctx.input(at.ids)});
  if (ctx.has_input(at.mask)) {
    kept = ctx.call("Cast", {ctx.call("Equal", {ctx.input(at.mask), ctx.number(1, ElementType::kInt32)})}, {to});
  }
  return ctx.call("ReduceSum", {kept, ctx.constant_int64s({1})}, {ir::Attribute::of("keepdims", 0)});
}

template <bool kQuantized>
Status lower_embedding(LowerContext& ctx) {
  constexpr InputIndices kAt = InputIndices::of(kQuantized);
  ir::Value* x = looked_up(ctx, kAt, 0, kAt.words, kAt.ids);
  ir::Value* positions;
  if (ctx.has_input(kAt.position_ids)) {
    positions = looked_up(ctx, kAt, 1, kAt.positions, kAt.position_ids);
  } else {
    ir::Value* length = fused::sizes(ctx, ctx.input(kAt.ids), 1, 2);
    positions = ctx.call("Slice", {ctx.input(kAt.positions), ctx.constant_int64s({0}), length});
    positions = dequantized(ctx, kAt, 1, positions);
  }
  if (ctx.has_input(kAt.segment_ids)) {
    x = ctx.call("Add", {x, looked_up(ctx, kAt, 2, kAt.segments, kAt.segment_ids)});
  }
  ir::Value* gamma = dequantized(ctx, kAt, 3, ctx.input(kAt.gamma));
  ir::Value* beta = dequantized(ctx, kAt, 4, ctx.input(kAt.beta));
  const float epsilon = ctx.attributes().get_float("epsilon");
  const ir::Node* sum = ctx.node("SkipLayerNormalization", std::array{x, positions, gamma, beta}, 4,
                                 {ir::Attribute::of("epsilon", epsilon)}, "com.microsoft");
  ctx.set_output(kResult, sum->outputs[0]);
  ctx.set_output(kMaskIndex, mask_index(ctx, kAt));
  if (!kQuantized) ctx.set_output(kSum, sum->outputs[3]);
  return {};
}

// Batch entries: words, segments and masks, and positions unless they are the same for all entries.
template <bool kQuantized>
Status embedding_axes(AxisContext& c) {
  constexpr InputIndices kAt = InputIndices::of(kQuantized);
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (!c.present(i)) continue;
    const bool of_entries = i == kAt.ids || i == kAt.segment_ids || i == kAt.mask || i == kAt.position_ids;
    if (c.in(i) > 0 || (c.runs_along(i) && !of_entries)) return looks_along("it looks all of its table up");
    const bool alike = !of_entries || (i == kAt.position_ids && c.size(i, 0).is_known(1));
    if (!c.runs_along(i) && !alike) return looks_along("not all of its inputs run along it");
  }
  return c.give_all(0);
}

}  // namespace

}  // namespace treadle::norm

TREADLE_OP(EmbedLayerNormalization, "com.microsoft") {
  op.since(1)
      .in("input_ids", "T1")
      .in("segment_ids", "T1", Arity::kOptional)
      .in("word_embedding", "T")
      .in("position_embedding", "T")
      .in("segment_embedding", "T", Arity::kOptional)
      .in("gamma", "T")
      .in("beta", "T")
      .in("mask", "T1", Arity::kOptional)
      .in("position_ids", "T1", Arity::kOptional)
      .out("output", "T")
      .out("mask_index", "T1", Arity::kOptional)
      .out("embedding_sum", "T", Arity::kOptional)
      .attr("epsilon", 1e-12)
      .optional("mask_index_type", ir::AttributeKind::kInt)
      .type("T1", types::kInt32s)
      .type("T", tensors(ElementType::kFloat, ElementType::kFloat16));
  op.infer(norm::infer_embedding<false>)
      .lower(norm::lower_embedding<false>)
      .can_fail()
      .axes(norm::embedding_axes<false>);
}

TREADLE_OP(QEmbedLayerNormalization, "com.microsoft") {
  op.since(1)
      .in("input_ids", "T1")
      .in("segment_ids", "T1", Arity::kOptional)
      .in("word_embedding_quant", "T2")
      .in("position_embedding_quant", "T2")
      .in("segment_embedding", "T2", Arity::kOptional)
      .in("gamma_quant", "T2")
      .in("beta_quant", "T2")
      .in("mask", "T1", Arity::kOptional)
      .in("word_embedding_scale", "T")
      .in("position_embedding_scale", "T")
      .in("segment_embedding_scale", "T", Arity::kOptional)
      .in("gamma_scale", "T")
      .in("beta_scale", "T")
      .in("word_embedding_zero_point", "T2")
      .in("position_embedding_zero_point", "T2")
      .in("segment_embedding_zero_point", "T2", Arity::kOptional)
      .in("gamma_zero_point", "T2")
      .in("beta_zero_point", "T2")
      .out("layernorm_out", "T")
      .out("mask_index_out", "T1")
      .attr("epsilon", 1e-12)
      .type("T1", types::kInt32s)
      .type("T2", types::kBytes)
      .type("T", types::kFloat32s);
  op.infer(norm::infer_embedding<true>).lower(norm::lower_embedding<true>).can_fail().axes(norm::embedding_axes<true>);
}
