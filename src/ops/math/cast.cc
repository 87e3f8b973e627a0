// Cast and CastLike: numbers by kernels/convert.h, strings by ops/math/string_cast.h.

#include <cstring>

#include "kernels/convert.h"
#include "op/axis_rules.h"
#include "op/pieces.h"
#include "op/small_contents.h"
#include "ops/math/cast_options.h"
#include "ops/math/string_cast.h"
#include "type/dim_fractions.h"

namespace treadle {

namespace {

// Version 1 has a name for the type, later versions a number.
ElementType target(const ir::Attributes& attributes) {
  const ir::Attribute* to = attributes.find("to");
  if (!to) return ElementType::kUndefined;
  if (to->kind == ir::AttributeKind::kInt) return element_type_from_number(to->as_int());
  std::string lower = to->as_string();
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return element_type_from_name(lower);
}

bool fits(const Dim& d, ElementType to) {
  if (!d.is_known()) return true;
  return to == ElementType::kInt64 || d.value() == static_cast<int32_t>(d.value());
}

bool is_exact_in_float(const Dim& d) {
  constexpr int64_t kMost = int64_t{1} << 24;
  return !d.is_known() || (d.value() <= kMost && d.value() >= -kMost);
}

Status infer_to(InferContext& ctx, ElementType to) {
  if (!ctx.has_input(0)) return {};
  if (const Shape* shape = ctx.shape(0)) {
    ctx.set_output(0, to, *shape);
  } else {
    ctx.set_output(0, to);
  }
  // Known contents pass through conversions.
  if (wants_small_reals(ctx)) {
    std::optional<Shape> known = small_reals(ctx, 0);
    if (!known) known = small_dims(ctx, 0);
    if (!known) return {};
    for (Dim& d : *known) {
      if (!is_exact_in_float(d)) d = Dim::unknown();
    }
    ctx.set_output_symbols(0, std::move(*known));
    return {};
  }
  if (!wants_small_symbols(ctx) || to == ElementType::kBool) return {};
  std::optional<Shape> dims = small_dims(ctx, 0);
  if (!dims) dims = small_reals(ctx, 0);
  if (dims) {
    for (Dim& d : *dims) d = rounded_to_zero(d);
    for (Dim& d : *dims) {
      if (!fits(d, to)) d = Dim::unknown();
    }
    ctx.set_output_symbols(0, std::move(*dims));
  }
  return {};
}

Status infer_cast(InferContext& ctx) {
  const ElementType to = target(ctx.attributes());
  if (to == ElementType::kUndefined) {
    return error(Code::kInvalidModel, "attribute to is {}, expected the number of an element type",
                 ctx.attributes().get_int("to"));
  }
  return infer_to(ctx, to);
}

Status infer_cast_like(InferContext& ctx) {
  return infer_to(ctx, ctx.element(1));
}

// ---------------------------------------------------------------------------------------------------------------------

struct CastState {
  kernels::TileConverter converter;
  size_t count;
};

// CastLike has one operand more than Cast: kOut is the number of the result.
template <size_t kOut>
uint32_t run_copy(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const CastState*>(state);
  return unless_stopped(copy_in_pieces(slots[operands[kOut]], slots[operands[0]], s.count * s.converter.to_width));
}

template <size_t kOut>
uint32_t run_one_step(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const CastState*>(state);
  const kernels::ConvertRow row = s.converter.direct ? s.converter.direct : s.converter.steps[0];
  row(slots[operands[0]], slots[operands[kOut]], s.count);
  return 0;
}

template <size_t kOut>
uint32_t run_steps(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const CastState*>(state);
  kernels::convert(s.converter, slots[operands[0]], slots[operands[kOut]], s.count);
  return 0;
}

template <size_t kOut>
KernelFn kernel_for(const kernels::TileConverter& converter, size_t count) {
  constexpr size_t kMany = size_t{1} << 20;  // longer copies ask in between whether to stop
  if (converter.step_count == 0) return run_copy<kOut>;
  const bool one_step = converter.step_count == 1 || converter.direct != nullptr;
  return one_step && count < kMany ? run_one_step<kOut> : run_steps<kOut>;
}

Status prepare_cast(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  const ElementType to = ctx.outputs[0].type;
  if (!kernels::can_convert(x.type, to)) {
    return error(Code::kNotImplemented, "no conversion from {} to {}", name(x.type), name(to));
  }
  const kernels::TileConverter converter = kernels::make_converter(x.type, to, cast_options(ctx.attributes()));
  if (ctx.form) {
    ctx.form->kind = ElementwiseForm::Kind::kConversion;
    ctx.form->converter = converter;
    if (ctx.form_only) return {};
  }
  const auto* state = ctx.make_state<CastState>(CastState{converter, static_cast<size_t>(x.element_count())});
  const KernelFn run = ctx.inputs.size() == 1 ? kernel_for<1>(state->converter, state->count)
                                              : kernel_for<2>(state->converter, state->count);
  ctx.set_kernel(run, state);
  return {};
}

// Only for strings, on either side.
Status compute_cast(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  const ElementType to = ctx.inputs.size() > 1 ? ctx.tensor(1).type() : target(ctx.attributes());
  TREADLE_ASSIGN(Tensor * out, ctx.allocate(0, to, x.dims()));
  return cast_strings(x, *out, cast_options(ctx.attributes()));
}

// Only the type of the second operand counts.
Status cast_like_axes(AxisContext& c) {
  return c.runs_along(0) ? c.give(0, c.in(0)) : axes::only_first(c);
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Cast, "") {
  op.since(1)
      .in("input", "T1")
      .out("output", "T2")
      .required("to", ir::AttributeKind::kString)
      .type("T1", types::kNumericBool)
      .type("T2", types::kNumericBool);
  op.since(6).required("to", ir::AttributeKind::kInt);
  op.since(9).type("T1", types::kCastable).type("T2", types::kCastable);
  op.since(13).type("T1", types::kCastableIr4).type("T2", types::kCastableIr4);
  op.since(19).attr("saturate", 1).type("T1", types::kCastableIr9).type("T2", types::kCastableIr9);
  op.since(21).type("T1", types::kCastableIr10).type("T2", types::kCastableIr10);
  op.since(23).type("T1", types::kCastableIr11).type("T2", types::kCastableIr11);
  op.since(24).attr("round_mode", "up").type("T1", types::kCastableIr12).type("T2", types::kCastableIr12);
  op.since(25).type("T1", types::kCastableIr13).type("T2", types::kCastableIr13);
  op.since(28).type("T1", types::kCastableIr14).type("T2", types::kCastableIr14);
  op.infer(infer_cast).prepare(prepare_cast).compute(compute_cast).can_fail(types::kStrings).elementwise().converts();
}

TREADLE_OP(CastLike, "") {
  op.since(15)
      .in("input", "T1")
      .in("target_type", "T2")
      .out("output", "T2")
      .type("T1", types::kCastableIr4)
      .type("T2", types::kCastableIr4);
  op.since(19).attr("saturate", 1).type("T1", types::kCastableIr9).type("T2", types::kCastableIr9);
  op.since(21).type("T1", types::kCastableIr10).type("T2", types::kCastableIr10);
  op.since(23).type("T1", types::kCastableIr11).type("T2", types::kCastableIr11);
  op.since(24).attr("round_mode", "up").type("T1", types::kCastableIr12).type("T2", types::kCastableIr12);
  op.since(25).type("T1", types::kCastableIr13).type("T2", types::kCastableIr13);
  op.infer(infer_cast_like)
      .prepare(prepare_cast)
      .compute(compute_cast)
      .can_fail(types::kStrings)
      .axes(cast_like_axes, axes::unchanged)
      .converts();
}
