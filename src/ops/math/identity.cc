// Identity of any value, and BitCast.

#include <cstring>

#include "op/axis_rules.h"
#include "op/pieces.h"
#include "op/small_contents.h"

namespace treadle {

namespace {

struct CopyState {
  size_t bytes;
};

uint32_t run_copy(const void* state, void* const* slots, const uint32_t* operands) {
  return unless_stopped(
      copy_in_pieces(slots[operands[1]], slots[operands[0]], static_cast<const CopyState*>(state)->bytes));
}

Status prepare_identity(PrepareContext& ctx) {
  ctx.set_kernel(run_copy, ctx.make_state<CopyState>(CopyState{ctx.outputs[0].byte_size()}));
  return {};
}

Status infer_identity(InferContext& ctx) {
  TREADLE_TRY(infer_like_input(ctx));
  if (wants_small_reals(ctx)) {
    if (std::optional<Shape> reals = small_reals(ctx, 0)) ctx.set_output_symbols(0, std::move(*reals));
  }
  if (!wants_small_symbols(ctx)) return {};
  if (std::optional<Shape> dims = small_dims(ctx, 0)) ctx.set_output_symbols(0, std::move(*dims));
  return {};
}

Status compute_identity(ComputeContext& ctx) {
  ctx.outputs[0] = ctx.inputs[0];
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------

Status infer_bit_cast(InferContext& ctx) {
  const int64_t number = ctx.attributes().get_int("to");
  const ElementType to = element_type_from_number(number);
  if (to == ElementType::kUndefined) {
    return error(Code::kInvalidModel, "attribute to is {}, expected the number of an element type", number);
  }
  if (!ctx.has_input(0)) return {};
  const ElementType from = ctx.element(0);
  if (info(from).file_bits != info(to).file_bits || is_string(to)) {
    return error(Code::kInvalidModel, "bits of {} ({} each) cannot be taken for {} ({} each), expected equal widths",
                 name(from), info(from).file_bits, name(to), info(to).file_bits);
  }
  if (const Shape* shape = ctx.shape(0)) {
    ctx.set_output(0, to, *shape);
  } else {
    ctx.set_output(0, to);
  }
  return {};
}

// Elements narrower than 8 bits take a byte in memory: signed ones sign-extended, others zero-extended.
struct NarrowState {
  size_t count;
  int shift;
  bool is_signed;
};

uint32_t run_narrow(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const NarrowState*>(state);
  const auto* in = static_cast<const uint8_t*>(slots[operands[0]]);
  auto* out = static_cast<uint8_t*>(slots[operands[1]]);
  return unless_stopped(in_pieces(static_cast<int64_t>(s.count), kByteNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto high = static_cast<uint8_t>(in[i] << s.shift);
      out[i] = s.is_signed ? static_cast<uint8_t>(static_cast<int8_t>(high) >> s.shift)
                           : static_cast<uint8_t>(high >> s.shift);
    }
  }));
}

Status prepare_bit_cast(PrepareContext& ctx) {
  const Operand& out = ctx.outputs[0];
  if (!is_sub_byte(out.type)) return prepare_identity(ctx);
  ctx.set_kernel(run_narrow,
                 ctx.make_state<NarrowState>(NarrowState{static_cast<size_t>(out.element_count()),
                                                         8 - info(out.type).file_bits, is_signed_integer(out.type)}));
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(BitCast, "") {
  op.since(26)
      .in("input", "T1")
      .out("output", "T2")
      .required("to", ir::AttributeKind::kInt)
      .type("T1", types::kBitsIr13)
      .type("T2", types::kBitsIr13);
  op.infer(infer_bit_cast).prepare(prepare_bit_cast).elementwise();
}

TREADLE_OP(Identity, "") {
  op.since(1).in("input", "T").out("output", "T").type("T", types::kAllTensors);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.since(14)
      .in("input", "V")
      .out("output", "V")
      .drop_type("T")
      .type("V", types::kAllTensorsIr4 | sequences_of(types::kAllTensors));
  op.since(16).type("V", types::kAllTensorsIr4 | sequences_of(types::kAllTensors) | optionals_of(types::kAllTensors) |
                             optional_sequences_of(types::kAllTensors));
  op.since(19).type("V", types::kAllTensorsIr9 | sequences_of(types::kAllTensors) | optionals_of(types::kAllTensors) |
                             optional_sequences_of(types::kAllTensors));
  op.since(21).type("V", types::kAllTensorsIr10 | sequences_of(types::kAllTensors) | optionals_of(types::kAllTensors) |
                             optional_sequences_of(types::kAllTensors));
  op.since(23).type("V", types::kAllTensorsIr11 | sequences_of(types::kAllTensors) | optionals_of(types::kAllTensors) |
                             optional_sequences_of(types::kAllTensors));
  op.since(24).type("V", types::kAllTensorsIr12 | sequences_of(types::kAllTensors) | optionals_of(types::kAllTensors) |
                             optional_sequences_of(types::kAllTensors));
  op.since(25).type("V", types::kAllTensorsIr13 | sequences_of(types::kAllTensors) | optionals_of(types::kAllTensors) |
                             optional_sequences_of(types::kAllTensors));
  op.infer(infer_identity).prepare(prepare_identity).compute(compute_identity).alias(0).axes(axes::element_by_element);
}
