// LayerNormalization and RMSNormalization over the axes from `axis` on, and SimplifiedLayerNormalization, onnxruntime's
// earlier form of RMSNormalization.

#include "kernels/normalize.h"
#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "op/work.h"
#include "ops/norm/channels.h"

namespace treadle {

namespace {

Status check_scale(const InferContext& ctx, int64_t axis) {
  const Shape& x = *ctx.shape(0);
  for (size_t i = 1; i < ctx.inputs.size(); ++i) {
    const Shape* s = ctx.shape(i);
    if (!s) continue;
    bool fits = s->size() <= x.size();
    for (size_t d = 0; fits && d < s->size(); ++d) {
      const size_t at = x.size() - s->size() + d;
      const Dim& have = (*s)[d];
      const bool one = !have.is_known() || have.is_known(1);
      fits = one || (static_cast<int64_t>(at) >= axis && (!x[at].is_known() || x[at].value() == have.value()));
    }
    if (!fits) {
      return error(Code::kInvalidArgument,
                   "{} has shape {}, expected one that broadcasts to the normalised axes of {}: from axis {} on",
                   ctx.node.version->inputs[i].name, to_string(*s), to_string(x), axis);
    }
  }
  return {};
}

// Element type of the statistics, by TensorProto number.
ElementType stash_type(const ir::Attributes& attributes) {
  return element_type_from_number(attributes.get_int("stash_type", 1));
}

// Output 0 has the sizes of X and the type of the scale; further outputs are statistics of rows.
Status infer_with_statistics(InferContext& ctx) {
  TREADLE_TRY(infer_like_input(ctx));
  const ElementType stash = stash_type(ctx.attributes());
  const Shape* x = ctx.shape(0);
  if (ctx.has_input(1)) ctx.outputs[0].element = ctx.element(1);
  if (!x) {
    for (size_t i = 1; i < ctx.outputs.size(); ++i) ctx.set_output(i, stash);
    return {};
  }
  TREADLE_ASSIGN(const int64_t axis, normalize_axis(ctx.attributes().get_int("axis"), ctx.input(0).rank()));
  TREADLE_TRY(check_scale(ctx, axis));
  for (size_t i = 1; i < ctx.outputs.size(); ++i) {
    Shape shape = *x;
    for (size_t d = static_cast<size_t>(axis); d < shape.size(); ++d) shape[d] = int64_t{1};
    ctx.set_output(i, stash, std::move(shape));
  }
  return {};
}

Status infer_rms_norm(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  if (!x) {
    ctx.set_output(0, ctx.element(1));
    return {};
  }
  TREADLE_ASSIGN(const int64_t axis, normalize_axis(ctx.attributes().get_int("axis"), ctx.input(0).rank()));
  TREADLE_TRY(check_scale(ctx, axis));
  ctx.set_output(0, ctx.element(1), *x);
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------

// A parameter smaller than a row is first repeated to the row's size.
struct RowParameter {
  uint32_t operand = 0;
  bool present = false, spread = false;
  kernels::CopyPlan copy;
  size_t offset = 0;

  Status prepare(const PrepareContext& ctx, uint32_t i, const Dims& row, ScratchLayout& scratch) {
    operand = i;
    present = ctx.has_input(i);
    if (!present) return {};
    Operand parameter = ctx.inputs[i];
    spread = parameter.element_count() != element_count_unchecked(row);
    if (!spread) return {};
    while (parameter.dims.size() > row.size()) {  // leading ones
      parameter.dims.erase(0);
      parameter.strides.erase(0);
    }
    offset = scratch.add(static_cast<size_t>(element_count_unchecked(row)) * byte_width(parameter.type));
    return kernels::prepare_copy(&copy, byte_width(parameter.type), row, broadcast_strides(parameter, row),
                                 contiguous_strides(row));
  }
  const void* get(void* const* slots, const uint32_t* operands, std::byte* scratch) const {
    if (!present) return nullptr;
    const void* data = slots[operands[operand]];
    if (!spread) return data;
    copy(data, scratch + offset);
    return scratch + offset;
  }
};

struct LayerNormState {
  kernels::NormRows rows;
  RowParameter scale, bias;
  norm::WideResult statistics[2];  // mean and inverse deviation
  uint32_t places[2] = {};         // operand numbers; 0: not wanted
  uint32_t output = 0, scratch = 0;
};

uint32_t run_layer_norm(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const LayerNormState*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[s.scratch]]);
  void* results[2] = {};
  for (size_t k = 0; k < 2; ++k) {
    if (s.places[k]) results[k] = s.statistics[k].begin(slots[operands[s.places[k]]], scratch);
  }
  parallel_normalize(s.rows, slots[operands[0]], s.scale.get(slots, operands, scratch),
                     s.bias.get(slots, operands, scratch), slots[operands[s.output]], results[0], results[1]);
  for (size_t k = 0; k < 2; ++k) {
    if (s.places[k]) s.statistics[k].finish(slots[operands[s.places[k]]], scratch);
  }
  return 0;
}

Status prepare_rows(PrepareContext& ctx, kernels::NormKind kind) {
  const Operand& x = ctx.inputs[0];
  TREADLE_ASSIGN(const int64_t axis, normalize_axis(ctx.attributes().get_int("axis"), x.rank()));
  const AxisView view = view_along(x.dims, axis, x.rank());
  auto* state = ctx.make_state<LayerNormState>();
  state->rows = {kind, x.type, ctx.inputs[1].type, view.outer, view.n, ctx.attributes().get_float("epsilon")};
  state->output = static_cast<uint32_t>(ctx.inputs.size());
  state->scratch = ctx.scratch_operand();
  const Dims row(x.dims.begin() + axis, x.dims.end());
  ScratchLayout scratch;
  TREADLE_TRY(state->scale.prepare(ctx, 1, row, scratch));
  TREADLE_TRY(state->bias.prepare(ctx, 2, row, scratch));
  const size_t first = kind == kernels::NormKind::kLayer ? 0 : 1;  // the first statistic that there is an output for
  for (size_t k = first; k < 2; ++k) {
    const size_t at = 1 + k - first;
    if (!ctx.has_output(at)) continue;
    state->places[k] = state->output + static_cast<uint32_t>(at);
    state->statistics[k].prepare(ctx.outputs[at], norm::wide_float(x.type), scratch);
  }
  ctx.scratch_bytes = scratch.size() + 64;
  ctx.set_kernel(run_layer_norm, state);
  return {};
}

Status prepare_layer_norm(PrepareContext& ctx) {
  return prepare_rows(ctx, kernels::NormKind::kLayer);
}

Status prepare_rms_norm(PrepareContext& ctx) {
  return prepare_rows(ctx, kernels::NormKind::kRms);
}

}  // namespace

}  // namespace treadle

TREADLE_OP(LayerNormalization, "") {
  // onnxruntime's operator from before the standard had it
  op.since(1)
      .in("X", "T")
      .in("Scale", "V")
      .in("B", "V", Arity::kOptional)
      .out("Y", "V")
      .out("Mean", "U", Arity::kOptional)
      .out("InvStdDev", "U", Arity::kOptional)
      .attr("axis", -1)
      .attr("epsilon", 1e-05)
      .attr("stash_type", 1)
      .type("T", types::kFloatsBf16)
      .type("U", types::kFloats32)
      .type("V", types::kFloatsBf16);
  op.since(17)
      .in("Scale", "T")
      .in("B", "T", Arity::kOptional)
      .out("Y", "T")
      .type("U", tensors(ElementType::kFloat, ElementType::kBfloat16))
      .drop_type("V");
  op.infer(infer_with_statistics)
      .prepare(prepare_layer_norm)
      .axes(axes::from_axis_attribute, axes::shift_axis)
      .work(work::reduction);
}

TREADLE_OP(RMSNormalization, "") {
  op.since(23)
      .in("X", "T")
      .in("scale", "V")
      .out("Y", "V")
      .attr("axis", -1)
      .attr("epsilon", 1e-05)
      .attr("stash_type", 1)
      .type("T", types::kFloatsBf16)
      .type("V", types::kFloatsBf16);
  op.infer(infer_rms_norm)
      .prepare(prepare_rms_norm)
      .axes(axes::from_axis_attribute, axes::shift_axis)
      .work(work::reduction);
}

TREADLE_OP(SimplifiedLayerNormalization, "") {
  op.since(1)
      .in("X", "T")
      .in("scale", "V")
      .out("Y", "V")
      .out("inv_std_var", "U", Arity::kOptional)
      .attr("axis", -1)
      .attr("epsilon", 1e-05)
      .attr("stash_type", 1)
      .type("T", types::kFloatsBf16)
      .type("U", types::kFloats32)
      .type("V", types::kFloatsBf16);
  op.infer(infer_with_statistics)
      .prepare(prepare_rms_norm)
      .axes(axes::from_axis_attribute, axes::shift_axis)
      .work(work::reduction);
}
