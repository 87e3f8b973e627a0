#include "ops/attention/rotary_embedding.h"

#include "op/axis_rules.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "ops/costs.h"

namespace treadle::attention {

namespace {

using enum RotaryState::Input;

// ---- Inference

// Angles are a table [positions, half], or given for each token as [batch, length, half].
Status check_angles(const InferContext& ctx, size_t i, const Dim& batch, const Dim& length, const Dim& half) {
  const Shape* shape = ctx.shape(i);
  if (!shape) return {};
  const size_t rank = ctx.has_input(kPositions) ? 2 : 3;
  bool fits = shape->size() == rank && !differ(shape->back(), half);
  if (fits && rank == 3) fits = !differ((*shape)[0], batch) && !differ((*shape)[1], length);
  if (fits) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected [{}{}]", i == kCos ? "cos_cache" : "sin_cache",
               to_string(*shape), rank == 2 ? "positions," : batch.to_string() + "," + length.to_string() + ",",
               half.to_string());
}

Status infer_rotary(InferContext& ctx) {
  if (!ctx.has_input(kData)) return {};
  ctx.set_output(0, ctx.input(kData));
  const Shape* x = ctx.shape(kData);
  if (!x) return {};
  if (x->size() != 3 && x->size() != 4) {
    return error(Code::kInvalidArgument, "X has shape {}, expected 3 or 4 dimensions", to_string(*x));
  }
  const bool packed = x->size() == 3;
  const int64_t heads = ctx.attributes().get_int("num_heads", 0);
  if (packed && heads < 1) {
    return error(Code::kInvalidModel,
                 "X has shape {}, expected attribute num_heads, which says how many heads are packed in it",
                 to_string(*x));
  }
  if (packed && x->back().is_known() && x->back().value() % heads != 0) {
    return error(Code::kInvalidArgument, "X has shape {}, expected a last axis of {} heads of equal size",
                 to_string(*x), heads);
  }
  const Dim size = packed ? floor_div(x->back(), Dim(heads)) : x->back();
  const int64_t turned = ctx.attributes().get_int("rotary_embedding_dim", 0);
  const bool fits = turned >= 0 && turned % 2 == 0 && (!size.is_known() || turned <= size.value());
  if (!fits || (turned == 0 && size.is_known() && size.value() % 2 != 0)) {
    return error(Code::kInvalidArgument,
                 "X has heads of {} elements, of which {} are rotated in pairs, expected an even number of at most {}",
                 size.to_string(), turned ? std::to_string(turned) : "all", size.to_string());
  }
  const Dim &batch = (*x)[0], &length = (*x)[packed ? 1 : 2];
  const Dim half = turned > 0 ? Dim(turned / 2) : floor_div(size, Dim(2));
  TREADLE_TRY(check_angles(ctx, kCos, batch, length, half));
  TREADLE_TRY(check_angles(ctx, kSin, batch, length, half));
  const Shape *cosines = ctx.shape(kCos), *sines = ctx.shape(kSin);
  if (cosines && sines && differ((*cosines)[0], (*sines)[0])) {
    return error(Code::kInvalidArgument, "cos_cache and sin_cache have shapes {} and {}, expected equal ones",
                 to_string(*cosines), to_string(*sines));
  }
  const Shape* positions = ctx.shape(kPositions);
  if (positions && (positions->size() != 2 || differ((*positions)[0], batch) || differ((*positions)[1], length))) {
    return error(Code::kInvalidArgument, "position_ids have shape {}, expected [{},{}]", to_string(*positions),
                 batch.to_string(), length.to_string());
  }
  return {};
}

// ---- Kernel

void turn(const RotaryState& s, const float* x, const float* cosine, const float* sine, float* y) {
  const int64_t half = s.half;
  if (s.interleaved) {
    for (int64_t i = 0; i < half; ++i) {
      const float a = x[2 * i], b = x[2 * i + 1];
      y[2 * i] = cosine[i] * a - sine[i] * b;
      y[2 * i + 1] = sine[i] * a + cosine[i] * b;
    }
  } else {
    for (int64_t i = 0; i < half; ++i) {
      const float a = x[i], b = x[half + i];
      y[i] = cosine[i] * a - sine[i] * b;
      y[half + i] = sine[i] * a + cosine[i] * b;
    }
  }
  for (int64_t i = 2 * half; i < s.size; ++i) y[i] = x[i];
}

}  // namespace

uint32_t run_rotary(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const RotaryState*>(state);
  const auto at = [&](size_t i) { return static_cast<std::byte*>(slots[operands[i]]); };
  const size_t width = byte_width(s.type);
  const bool narrow = s.type != ElementType::kFloat;
  auto* scratch = narrow ? reinterpret_cast<float*>(at(s.scratch)) : nullptr;
  const auto widened = [&](const std::byte* from, int64_t n, int64_t offset) -> const float* {
    if (!narrow) return reinterpret_cast<const float*>(from);
    kernels::convert(s.widen, from, scratch + offset, static_cast<size_t>(n));
    return scratch + offset;
  };
  StopPoll stop;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t t = 0; t < s.length; ++t) {
      int64_t angle = b * s.length + t;
      if (s.positions > 0) {
        angle = reinterpret_cast<const int64_t*>(at(kPositions))[angle];
        if (angle < -s.positions || angle >= s.positions) {
          return fail(KernelError::kIndexOutOfRange, angle, s.positions);
        }
        if (angle < 0) angle += s.positions;
      }
      const size_t row = static_cast<size_t>(angle * s.half) * width;
      const float* cosine = widened(at(kCos) + row, s.half, 0);
      const float* sine = widened(at(kSin) + row, s.half, s.half);
      for (int64_t h = 0; h < s.heads; ++h) {
        const int64_t place = b * s.heads * s.length * s.size + h * s.head_stride + t * s.row_stride;
        const float* x = widened(at(kData) + static_cast<size_t>(place) * width, s.size, 2 * s.half);
        std::byte* out = at(s.output) + static_cast<size_t>(place) * width;
        float* y = narrow ? scratch + 2 * s.half + s.size : reinterpret_cast<float*>(out);
        if (stop.after(costs::kRotaryElementNs * static_cast<double>(s.size))) return fail(KernelError::kStopped);
        turn(s, x, cosine, sine, y);
        if (narrow) kernels::convert(s.narrow, y, out, static_cast<size_t>(s.size));
      }
    }
  }
  return 0;
}

namespace {

Status prepare_rotary(PrepareContext& ctx) {
  auto* s = ctx.make_state<RotaryState>();
  const Operand& x = ctx.inputs[kData];
  const bool packed = x.dims.size() == 3;
  s->batch = x.dims[0];
  s->heads = packed ? ctx.attributes().get_int("num_heads") : x.dims[1];
  s->length = x.dims[packed ? 1 : 2];
  s->size = packed ? x.dims[2] / s->heads : x.dims[3];
  s->head_stride = packed ? s->size : s->length * s->size;
  s->row_stride = packed ? x.dims[2] : s->size;
  const int64_t turned = ctx.attributes().get_int("rotary_embedding_dim", 0);
  s->half = (turned > 0 ? turned : s->size) / 2;
  s->interleaved = ctx.attributes().get_int("interleaved", 0) != 0;
  if (ctx.has_input(kPositions)) {
    s->positions = ctx.inputs[kCos].dims[0];
    if (ctx.inputs[kSin].dims[0] != s->positions || (s->positions == 0 && s->batch * s->length > 0)) {
      return error(Code::kInvalidArgument,
                   "cos_cache and sin_cache have rows for {} and {} positions, expected equal numbers of at least 1",
                   s->positions, ctx.inputs[kSin].dims[0]);
    }
  }
  s->type = x.type;
  s->widen = kernels::make_converter(x.type, ElementType::kFloat);
  s->narrow = kernels::make_converter(ElementType::kFloat, x.type);
  s->output = static_cast<uint32_t>(ctx.inputs.size());
  s->scratch = ctx.scratch_operand();
  if (x.type != ElementType::kFloat) ctx.scratch_bytes = static_cast<size_t>(2 * s->half + 2 * s->size) * sizeof(float);
  ctx.set_kernel(run_rotary, s);
  return {};
}

// Batch entries and steps have angles of their own, looked up by position or given. Heads share them.
Status rotary_axes(AxisContext& c) {
  const int64_t time = c.rank(kData) == 3 ? 1 : 2;
  if (c.in(kData) == c.rank(kData) - 1) return looks_along("it turns pairs of elements along it");
  const int64_t angles = c.in(kData) == 0 ? 0 : c.in(kData) == time ? 1 : kNoAxis;
  const bool looks_up = c.present(kPositions);
  for (const size_t i : {kCos, kSin, kPositions}) {
    const int64_t expected = looks_up == (i == kPositions) ? angles : kNoAxis;
    if (c.present(i) && c.in(i) != expected) return looks_along("not all of its inputs run along it");
  }
  return c.give(0, c.in(kData));
}

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(RotaryEmbedding, "") {
  op.since(23)
      .in("X", "T")
      .in("cos_cache", "T")
      .in("sin_cache", "T")
      .in("position_ids", "M", Arity::kOptional)
      .out("Y", "T")
      .attr("interleaved", 0)
      .optional("num_heads", ir::AttributeKind::kInt)
      .attr("rotary_embedding_dim", 0)
      .type("T", types::kFloatsTo32)
      .type("M", types::kInt64s);
  op.infer(attention::infer_rotary).prepare(attention::prepare_rotary).can_fail().axes(attention::rotary_axes);
}
