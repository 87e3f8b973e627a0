// RotaryEmbedding of com.microsoft: positions precede the angles, a single position is where all entries begin, and the
// number of heads may follow from the size of the angles. GemmaRotaryEmbedding: rotations of inputs whose halves are
// already exchanged.

#include <algorithm>
#include <array>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/fused/calls.h"

namespace treadle::attention {

namespace {

using namespace fused;  // NOLINT(google-build-using-namespace): helpers of lowerings

enum RotaryInput : size_t { kData, kPositions, kCos, kSin };

Status check_operands(const InferContext& ctx) {
  const Shape* x = ctx.shape(kData);
  if (ctx.attributes().get_int("is_packed_batching", 0) != 0) {
    return error(Code::kNotImplemented, "attribute is_packed_batching is 1: entries have to be padded to one length");
  }
  if (x && x->size() != 3 && x->size() != 4) {
    return error(Code::kInvalidArgument, "input has shape {}, expected 3 or 4 dimensions", to_string(*x));
  }
  for (const size_t i : {kCos, kSin}) {
    const Shape* shape = ctx.shape(i);
    if (!shape || shape->size() == 2) continue;
    return error(Code::kInvalidArgument, "{} has shape {}, expected [positions,pairs]",
                 i == kCos ? "cos_cache" : "sin_cache", to_string(*shape));
  }
  return {};
}

Status infer_rotary(InferContext& ctx) {
  const Shape *x = ctx.shape(kData), *positions = ctx.shape(kPositions);
  TREADLE_TRY(check_operands(ctx));
  if (positions) {
    const Dim length = x ? (*x)[x->size() - 2] : Dim::unknown();
    const bool each =
        positions->size() == 2 && (!x || (!differ((*positions)[0], (*x)[0]) && !differ((*positions)[1], length)));
    if (!each && !(positions->size() == 1 && !differ((*positions)[0], Dim(1)))) {
      return error(Code::kInvalidArgument, "position_ids have shape {}, expected [1] or [batch,length] of input {}",
                   to_string(*positions), x ? to_string(*x) : "?");
    }
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

// Batch entries, with positions of their own or the same for all; heads that are not packed.
Status rotary_axes(AxisContext& c) {
  if (c.runs_along(kCos) || c.runs_along(kSin)) return looks_along("it looks all of its angles up");
  const bool shared = c.rank(kPositions) == 1;
  const int64_t axis = c.in(kData);
  if (axis == 0 && (shared ? !c.runs_along(kPositions) : c.in(kPositions) == 0)) return c.give(0, 0);
  if (axis == 1 && c.rank(kData) == 4 && !c.runs_along(kPositions)) return c.give(0, 1);
  return looks_along("it turns pairs of elements by the positions along it");
}

void add_rotary(VersionBuilder& version) {
  version.in("input", "T")
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
}

// ---- MRotaryEmbedding: three positions for each token, in time, height and width. Each pair uses one of the three.

Result<std::array<int64_t, 3>> read_sections(const ir::Attributes& attributes) {
  const auto given = attributes.get_ints("mrope_section");
  if (given.size() != 3 || std::any_of(given.begin(), given.end(), [](int64_t n) { return n < 0; })) {
    return error(Code::kInvalidModel, "attribute mrope_section has {} numbers, expected 3 of 0 or more", given.size());
  }
  return std::array<int64_t, 3>{given[0], given[1], given[2]};
}

Status check_sections(const InferContext& ctx, const Shape* x) {
  TREADLE_ASSIGN(const auto sections, read_sections(ctx.attributes()));
  const int64_t layout = ctx.attributes().get_int("mrope_layout"), sum = sections[0] + sections[1] + sections[2];
  if (layout != 0 && layout != 1)
    return error(Code::kInvalidModel, "attribute mrope_layout is {}, expected 0 or 1", layout);
  for (const size_t i : {kCos, kSin}) {
    const Shape* angles = ctx.shape(i);
    if (angles && !differ((*angles)[1], Dim(sum))) continue;
    if (!angles) continue;
    return error(Code::kInvalidArgument, "{} has shape {}, expected the {} pairs of mrope_section",
                 i == kCos ? "cos_cache" : "sin_cache", to_string(*angles), sum);
  }
  if (x && x->size() == 3 && ctx.attributes().get_int("num_heads") < 1) {
    return error(Code::kInvalidModel,
                 "attribute num_heads is {}, expected at least 1 for input {}, which has its heads side by side",
                 ctx.attributes().get_int("num_heads"), to_string(*x));
  }
  return {};
}

Status infer_three(InferContext& ctx) {
  const Shape *x = ctx.shape(kData), *positions = ctx.shape(kPositions);
  TREADLE_TRY(check_operands(ctx));
  if (positions) {
    bool fits = positions->size() == 3 && !differ((*positions)[0], Dim(3));
    fits = fits && (!x || (!differ((*positions)[1], (*x)[0]) && !differ((*positions)[2], (*x)[x->size() - 2])));
    if (!fits) {
      return error(Code::kInvalidArgument, "position_ids have shape {}, expected [3,batch,length] of input {}",
                   to_string(*positions), x ? to_string(*x) : "?");
    }
  }
  TREADLE_TRY(check_sections(ctx, x));
  ctx.set_output(0, ctx.input(kData));
  return {};
}

// For each pair, which of the three positions it uses.
Tensor position_of_pairs(const std::array<int64_t, 3>& sections, bool interleaved) {
  std::vector<int64_t> which(static_cast<size_t>(sections[0] + sections[1] + sections[2]), 0);
  for (size_t i = 0; i < which.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (!interleaved) {
      which[i] = at < sections[0] ? 0 : at < sections[0] + sections[1] ? 1 : 2;
    } else if (at % 3 != 0 && at < 3 * sections[i % 3]) {
      which[i] = at % 3;
    }
  }
  return Tensor::of_int64(which);
}

Status lower_three(LowerContext& ctx) {
  const Type& x = ctx.type(kData);
  if (!x.has_shape) return error(Code::kNotImplemented, "an input of unknown rank");
  TREADLE_ASSIGN(const auto sections, read_sections(ctx.attributes()));
  ir::Value* which = ctx.constant(position_of_pairs(sections, ctx.attributes().get_int("mrope_layout") == 1));
  // [batch,length,pairs]: the position of each pair, then its angle.
  ir::Value* at = ctx.call("Gather", {ctx.input(kPositions), which}, {ir::Attribute::of("axis", int64_t{0})});
  at = ctx.call("Transpose", {at}, {ir::Attribute::of("perm", std::vector<int64_t>{1, 2, 0})});
  ir::Value* pair = ctx.call("Expand", {counted(ctx, size_of(ctx, ctx.input(kCos), 1)), ctx.call("Shape", {at})});
  ir::Value* place =
      ctx.call("Concat", {unsqueeze(ctx, at, {3}), unsqueeze(ctx, pair, {3})}, {ir::Attribute::of("axis", int64_t{3})});
  std::vector<ir::Attribute> attributes{
      ir::Attribute::of("interleaved", ctx.attributes().get_int("interleaved")),
      ir::Attribute::of("rotary_embedding_dim", 2 * (sections[0] + sections[1] + sections[2]))};
  if (x.rank() == 3) attributes.push_back(ir::Attribute::of("num_heads", ctx.attributes().get_int("num_heads")));
  const auto angles = [&](size_t cache) { return ctx.call("GatherND", {ctx.input(cache), place}); };
  ctx.set_output(0, ctx.call("RotaryEmbedding", {ctx.input(kData), angles(kCos), angles(kSin)}, std::move(attributes)));
  return {};
}

// Batch entries, and heads that are not packed.
Status three_axes(AxisContext& c) {
  if (c.runs_along(kCos) || c.runs_along(kSin)) return looks_along("it looks all of its angles up");
  if (c.in(kData) == 0 && c.in(kPositions) == 1) return c.give(0, 0);
  if (c.in(kData) == 1 && c.rank(kData) == 4 && !c.runs_along(kPositions)) return c.give(0, 1);
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
    const Shape* partner = i % 2 == 0 ? ctx.shape(i - 1) : nullptr;  // input i is the rotated half of these rows
    fits = fits && (!partner || !shape || !differ((*shape)[1], (*partner)[1]));
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
  op.since(1).with(attention::add_rotary);
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

TREADLE_OP(MRotaryEmbedding, "com.microsoft") {
  op.since(1)
      .with(attention::add_rotary)
      .optional("mrope_layout", ir::AttributeKind::kInt)
      .required("mrope_section", ir::AttributeKind::kInts);
  op.infer(attention::infer_three).lower(attention::lower_three).can_fail().axes(attention::three_axes);
}
