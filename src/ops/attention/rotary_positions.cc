// RotaryEmbedding as onnxruntime has it: positions stand before the angles, one for all entries says where they begin,
// and heads may be counted by the size of the angles. GemmaRotaryEmbedding: rotations whose halves are already
// exchanged.

#include <array>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/fused/calls.h"

namespace treadle::attention {

namespace {

using namespace fused;  // NOLINT(google-build-using-namespace): what lowerings call

enum RotaryInput : size_t { kData, kPositions, kCos, kSin };

Status infer_rotary(InferContext& ctx) {
  const Shape *x = ctx.shape(kData), *positions = ctx.shape(kPositions);
  if (ctx.attributes().get_int("is_packed_batching", 0) != 0) {
    return error(Code::kNotImplemented, "attribute is_packed_batching is 1: entries have to be padded to one length");
  }
  if (x && x->size() != 3 && x->size() != 4) {
    return error(Code::kInvalidArgument, "input has shape {}, expected 3 or 4 dimensions", to_string(*x));
  }
  if (positions) {
    const Dim length = x ? (*x)[x->size() - 2] : Dim::unknown();
    const bool each =
        positions->size() == 2 && (!x || (!differ((*positions)[0], (*x)[0]) && !differ((*positions)[1], length)));
    if (!each && !(positions->size() == 1 && !differ((*positions)[0], Dim(1)))) {
      return error(Code::kInvalidArgument, "position_ids have shape {}, expected [1] or [batch,length] of input {}",
                   to_string(*positions), x ? to_string(*x) : "?");
    }
  }
  for (const size_t i : {kCos, kSin}) {
    const Shape* shape = ctx.shape(i);
    if (!shape || shape->size() == 2) continue;
    return error(Code::kInvalidArgument, "{} has shape {}, expected [positions,pairs]",
                 i == kCos ? "cos_cache" : "sin_cache", to_string(*shape));
  }
  ctx.set_output(0, ctx.input(kData));
  return {};
}

Status lower_rotary(LowerContext& ctx) {
  const Type &x = ctx.type(kData), &cosines = ctx.type(kCos), &positions = ctx.type(kPositions);
  if (!x.has_shape || !positions.has_shape || !cosines.has_shape || !cosines.shape[1].is_known()) {
    return error(Code::kNotImplemented, "operands of unknown rank, or angles of unknown number");
  }
  const bool packed = x.rank() == 3;
  const int64_t pairs = cosines.shape[1].value();
  std::vector<ir::Attribute> attributes{ir::Attribute::of("interleaved", ctx.attributes().get_int("interleaved", 0)),
                                        ir::Attribute::of("rotary_embedding_dim", 2 * pairs)};
  if (packed) {
    int64_t heads = ctx.attributes().get_int("num_heads", 0);
    if (heads == 0) {
      if (!x.shape[2].is_known() || pairs == 0) return error(Code::kNotImplemented, "heads of unknown number");
      heads = x.shape[2].value() / (2 * pairs);
    }
    attributes.push_back(ir::Attribute::of("num_heads", heads));
  }
  ir::Value* at = ctx.input(kPositions);
  if (positions.rank() == 1) {
    ir::Value* length = size_of(ctx, ctx.input(kData), packed ? 1 : 2);
    at = ctx.call("Add", {counted(ctx, length), at});
    at = ctx.call("Expand", {at, concat(ctx, {size_of(ctx, ctx.input(kData), 0), length})});
  }
  ctx.set_output(
      0, ctx.call("RotaryEmbedding", {ctx.input(kData), ctx.input(kCos), ctx.input(kSin), at}, std::move(attributes)));
  return {};
}

// Entries, with positions of their own or the same for all; heads that are not packed.
Status rotary_axes(AxisContext& c) {
  if (c.runs_along(kCos) || c.runs_along(kSin)) return looks_along("it looks all of its angles up");
  const bool shared = c.rank(kPositions) == 1;
  const int64_t axis = c.in(kData);
  if (axis == 0 && (shared ? !c.runs_along(kPositions) : c.in(kPositions) == 0)) return c.give(0, 0);
  if (axis == 1 && c.rank(kData) == 4 && !c.runs_along(kPositions)) return c.give(0, 1);
  return looks_along("it turns pairs of elements by the positions along it");
}

// ---- GemmaRotaryEmbedding

Status infer_gemma(InferContext& ctx) {
  const Shape* angles = ctx.shape(0);
  if (angles && angles->size() != 3) {
    return error(Code::kInvalidArgument, "emb has shape {}, expected [batch,length,size]", to_string(*angles));
  }
  for (size_t i = 1; i < ctx.inputs.size(); ++i) {
    const Shape* shape = ctx.shape(i);
    bool fits = !shape || shape->size() == 4;
    if (fits && shape && angles) {
      fits = !differ((*shape)[0], (*angles)[0]) && !differ((*shape)[2], (*angles)[1]) &&
             !differ((*shape)[3], (*angles)[2]);
    }
    if (fits) continue;
    return error(Code::kInvalidArgument, "{} has shape {}, expected [batch,heads,length,size] of emb {}",
                 ctx.node.version->inputs[i].name, to_string(*shape), angles ? to_string(*angles) : "?");
  }
  ctx.set_output(0, ctx.input(1));
  ctx.set_output(1, ctx.input(3));
  return {};
}

Status lower_gemma(LowerContext& ctx) {
  const ElementType type = ctx.type(1).element;
  const auto angles = [&](const char* function) {
    return unsqueeze(ctx, cast(ctx, ctx.call(function, {ctx.input(0)}), ctx.type(0).element, type), {1});
  };
  ir::Value *sine = angles("Sin"), *cosine = angles("Cos");
  for (size_t k = 0; k < 2; ++k) {
    ir::Value* kept = ctx.call("Mul", {ctx.input(1 + 2 * k), cosine});
    ctx.set_output(k, ctx.call("Add", {kept, ctx.call("Mul", {ctx.input(2 + 2 * k), sine})}));
  }
  return {};
}

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(RotaryEmbedding, "com.microsoft") {
  op.since(1)
      .in("input", "T")
      .in("position_ids", "M")
      .in("cos_cache", "T")
      .in("sin_cache", "T")
      .out("output", "T")
      .optional("interleaved", ir::AttributeKind::kInt)
      .optional("is_packed_batching", ir::AttributeKind::kInt)
      .optional("num_heads", ir::AttributeKind::kInt)
      .optional("rotary_embedding_dim", ir::AttributeKind::kInt)
      .optional("scale", ir::AttributeKind::kFloat)
      .type("T", types::kFloatsTo32)
      .type("M", types::kInt64s);
  op.infer(attention::infer_rotary).lower(attention::lower_rotary).can_fail().axes(attention::rotary_axes);
}

TREADLE_OP(GemmaRotaryEmbedding, "com.microsoft") {
  op.since(1)
      .in("emb", "U")
      .in("q", "T")
      .in("q_rot", "T")
      .in("k", "T")
      .in("k_rot", "T")
      .out("output1", "T")
      .out("output2", "T")
      .type("T", tensors(ElementType::kFloat16))
      .type("U", types::kFloat32s);
  op.infer(attention::infer_gemma).lower(attention::lower_gemma).axes(axes::entries_of<0b11111>);
}
