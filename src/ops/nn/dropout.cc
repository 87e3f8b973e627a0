// Dropout: the identity, except in training. Training is requested by is_test = 0 in versions 1 and 6, cannot be
// requested in versions 7 and 10, and is requested by the input training_mode from version 12 on.

#include <algorithm>

#include "kernels/convert.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/pieces.h"
#include "op/refused_element.h"
#include "ops/costs.h"
#include "ops/random/source.h"

namespace treadle::nn {

namespace {

enum Input : size_t { kData, kRatio, kTraining };

Status infer_dropout(InferContext& ctx) {
  if (const Tensor* ratio = ctx.version() >= 12 ? ctx.value(1) : nullptr; ratio && ratio->element_count() == 1) {
    const double value = ratio->double_at(0);
    if (!(value >= 0 && value < 1)) {
      return error(Code::kInvalidArgument, "ratio is {}, expected at least 0 and less than 1", value);
    }
  }
  ctx.set_output(0, ctx.input(0));
  if (ctx.outputs.size() < 2) return {};
  Type mask = ctx.input(0);
  if (ctx.version() >= 10) mask.element = ElementType::kBool;
  ctx.set_output(1, std::move(mask));
  return {};
}

struct DropoutState {
  size_t count = 0, width = 4;
  ElementType ratio_type = ElementType::kFloat;
  float ratio = 0.5f;
  bool ratio_input = false, training_input = false, training = false;
  bool has_mask = false;
  random::Source source;
  random::UnitNumbers numbers;
  kernels::TileConverter widen, narrow, to_mask;  // of elements to double and back; of double to the mask
  uint32_t output = 0;
};

// `kept`: 1 or 0 for n elements from `begin` on.
void write_mask(const DropoutState& s, void* mask, size_t begin, const double* kept, size_t n) {
  kernels::convert(s.to_mask, kept, static_cast<std::byte*>(mask) + begin * s.to_mask.to_width, n);
}

void drop(const DropoutState& s, double ratio, const std::byte* x, std::byte* y, void* mask) {
  const kernels::RandomKey sequence = s.source.sequence();
  const double scale = ratio < 1 ? 1 / (1 - ratio) : 0;
  random::for_each_tile(s.count, costs::kDropoutElementNs, [&](size_t begin, size_t n) {
    double kept[kernels::kTile], values[kernels::kTile];
    s.numbers.make(sequence, begin, kept, n);
    kernels::convert(s.widen, x + begin * s.width, values, n);
    for (size_t i = 0; i < n; ++i) {  // a selection instead of a branch, which would be mispredicted
      const double scaled = values[i] * scale;
      values[i] = kept[i] >= ratio ? scaled : 0.0;
      kept[i] = kept[i] >= ratio ? 1.0 : 0.0;
    }
    kernels::convert(s.narrow, values, y + begin * s.width, n);
    if (mask) write_mask(s, mask, begin, kept, n);
  });
}

uint32_t run_dropout(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const DropoutState*>(state);
  const auto* x = static_cast<const std::byte*>(slots[operands[kData]]);
  auto* y = static_cast<std::byte*>(slots[operands[s.output]]);
  void* mask = s.has_mask ? slots[operands[s.output + 1]] : nullptr;
  const bool training = s.training_input ? *static_cast<const bool*>(slots[operands[kTraining]]) : s.training;
  double ratio = static_cast<double>(s.ratio);
  if (s.ratio_input) kernels::cast(s.ratio_type, ElementType::kDouble, slots[operands[kRatio]], &ratio, 1);
  if (training && ratio != 0) {
    if (!(ratio > 0 && ratio < 1)) return refuse_number({"ratio", -1}, ratio, "at least 0 and less than 1");
    drop(s, ratio, x, y, mask);
    return 0;
  }
  if (x != y && !copy_in_pieces(y, x, s.count * s.width)) return fail(KernelError::kStopped);
  if (!mask) return 0;
  double kept[kernels::kTile];
  std::fill_n(kept, kernels::kTile, 1.0);
  random::for_each_tile(s.count, costs::kDropoutMaskNs,
                        [&](size_t begin, size_t n) { write_mask(s, mask, begin, kept, n); });
  return 0;
}

Status prepare_dropout(PrepareContext& ctx) {
  auto* s = ctx.make_state<DropoutState>();
  const Operand& x = ctx.inputs[kData];
  s->count = static_cast<size_t>(x.element_count());
  s->widen = kernels::make_converter(x.type, ElementType::kDouble);
  s->narrow = kernels::make_converter(ElementType::kDouble, x.type);
  s->width = byte_width(x.type);
  s->ratio = ctx.attributes().get_float("ratio", 0.5f);
  s->training = ctx.version() < 7 && ctx.attributes().get_int("is_test", 0) == 0;
  if (ctx.has_input(kRatio)) {
    s->ratio_input = true;
    s->ratio_type = ctx.inputs[kRatio].type;
    if (ctx.inputs[kRatio].element_count() != 1) {
      return error(Code::kInvalidArgument, "ratio has shape {}, expected a scalar", to_string(ctx.inputs[kRatio].dims));
    }
  }
  if (ctx.has_input(kTraining)) {
    s->training_input = true;
    if (ctx.inputs[kTraining].element_count() != 1) {
      return error(Code::kInvalidArgument, "training_mode has shape {}, expected a scalar",
                   to_string(ctx.inputs[kTraining].dims));
    }
  }
  s->has_mask = ctx.has_output(1);
  if (s->has_mask) s->to_mask = kernels::make_converter(ElementType::kDouble, ctx.outputs[1].type);
  s->source = random::Source::of(ctx.attributes());
  s->output = static_cast<uint32_t>(ctx.inputs.size());
  ctx.set_kernel(run_dropout, s);
  return {};
}

}  // namespace

}  // namespace treadle::nn

TREADLE_OP(Dropout, "") {
  op.since(1)
      .in("data", "T")
      .out("output", "T")
      .out("mask", "T", Arity::kOptional)
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .attr("is_test", 0)
      .attr("ratio", 0.5)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(7).drop_attr("is_test");
  op.since(10).out("mask", "T1", Arity::kOptional).type("T1", types::kBools);
  op.since(12)
      .in("ratio", "T1", Arity::kOptional)
      .in("training_mode", "T2", Arity::kOptional)
      .out("mask", "T2", Arity::kOptional)
      .drop_attr("ratio")
      .optional("seed", ir::AttributeKind::kInt)
      .type("T1", types::kFloats)
      .type("T2", types::kBools);
  op.since(13).type("T", types::kFloatsBf16);
  op.since(22)
      .type("T", tensors(ElementType::kFloat, ElementType::kFloat16, ElementType::kDouble, ElementType::kBfloat16,
                         ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz, ElementType::kFloat8e5m2,
                         ElementType::kFloat8e5m2fnuz))
      .type("T1", tensors(ElementType::kFloat, ElementType::kFloat16, ElementType::kDouble, ElementType::kBfloat16,
                          ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz, ElementType::kFloat8e5m2,
                          ElementType::kFloat8e5m2fnuz));
  op.infer(nn::infer_dropout).prepare(nn::prepare_dropout).random().axes(axes::element_by_element);
}
