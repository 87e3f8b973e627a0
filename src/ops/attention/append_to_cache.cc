// AppendToCache: keys or values of past steps and of this step in one buffer [batch, heads, size, head]. Each batch
// entry has a length of its own. Rows behind an entry's length are those of the past, or zeros if the past has none
// there.

#include <cstring>

#include "kernels/costs.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "ops/attention/attention.h"

namespace treadle::attention {

namespace {

enum CacheInput : size_t { kPast, kFresh, kLengths, kSize };

Status infer_append(InferContext& ctx) {
  const int64_t heads = ctx.attributes().get_int("heads");
  const Shape *past = ctx.shape(kPast), *fresh = ctx.shape(kFresh);
  Shape out = unknown_shape(4);
  out[1] = heads;
  if (fresh && fresh->size() == 3) {
    if ((*fresh)[2].is_known() && (*fresh)[2].value() % heads != 0) {
      return error(Code::kInvalidArgument,
                   "keys or values have shape {}, expected a last axis of {} heads of equal size", to_string(*fresh),
                   heads);
    }
    out[0] = (*fresh)[0];
    out[3] = floor_div((*fresh)[2], Dim(heads));
  } else if (fresh && fresh->size() == 4) {
    out[0] = (*fresh)[0];
    out[3] = (*fresh)[3];
  } else if (fresh) {
    return error(Code::kInvalidArgument, "keys or values have shape {}, expected 3 or 4 dimensions", to_string(*fresh));
  }
  if (past &&
      (past->size() != 4 || differ((*past)[0], out[0]) || differ((*past)[1], out[1]) || differ((*past)[3], out[3]))) {
    return error(Code::kInvalidArgument, "past_key or past_value has shape {}, expected [{},{},past,{}]",
                 to_string(*past), out[0].to_string(), heads, out[3].to_string());
  }
  const Shape* lengths = ctx.shape(kLengths);
  if (lengths && (lengths->size() != 1 || differ((*lengths)[0], out[0]))) {
    return error(Code::kInvalidArgument, "lengths have shape {}, expected [{}]", to_string(*lengths),
                 out[0].to_string());
  }
  if (const auto size = ctx.dims_value(kSize); size && size->size() == 1) out[2] = (*size)[0];
  ctx.set_output(0, ctx.element(kFresh), std::move(out));
  return {};
}

struct AppendState {
  Heads fresh;
  int64_t batch = 0, past = 0, size = 0;
  double head_ns = 0;
};

uint32_t run_append(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const AppendState*>(state);
  const size_t width = byte_width(s.fresh.type);
  const auto bytes = [&](int64_t rows) { return static_cast<size_t>(rows * s.fresh.size) * width; };
  const auto* past = static_cast<const std::byte*>(slots[operands[kPast]]);
  const auto* fresh = static_cast<const std::byte*>(slots[operands[kFresh]]);
  const auto* lengths = static_cast<const int64_t*>(slots[operands[kLengths]]);
  auto* out = static_cast<std::byte*>(slots[operands[4]]);
  const int64_t kept = std::min(s.past, s.size);
  for (int64_t b = 0; b < s.batch; ++b) {
    const int64_t before = std::max<int64_t>(0, lengths[b] - s.fresh.length);
    if (before > s.past || before + s.fresh.length > s.size) {
      return fail(KernelError::kSequenceLength, lengths[b], std::min(s.past + s.fresh.length, s.size), b);
    }
  }
  parallel_for(s.batch * s.fresh.heads, s.head_ns, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / s.fresh.heads, h = i % s.fresh.heads;
      const int64_t before = std::max<int64_t>(0, lengths[b] - s.fresh.length);
      std::byte* to = out + bytes(i * s.size);
      if (kept > 0) std::memcpy(to, past + bytes(i * s.past), bytes(kept));
      const std::byte* from = fresh + static_cast<size_t>(s.fresh.at(b, h)) * width;
      for (int64_t row = 0; row < s.fresh.length; ++row) {
        std::memcpy(to + bytes(before + row), from + static_cast<size_t>(row * s.fresh.row_stride) * width, bytes(1));
      }
      const int64_t filled = std::max(before + s.fresh.length, kept);
      std::memset(to + bytes(filled), 0, bytes(s.size - filled));
    }
  });
  return 0;
}

Status prepare_append(PrepareContext& ctx) {
  auto* s = ctx.make_state<AppendState>();
  s->fresh = Heads::of(ctx.inputs[kFresh], ctx.attributes().get_int("heads"));
  s->batch = ctx.outputs[0].dims[0];
  s->past = ctx.has_input(kPast) ? ctx.inputs[kPast].dims[2] : 0;
  s->size = ctx.outputs[0].dims[2];
  s->head_ns = costs::kMovedByteNs * static_cast<double>(s->size * s->fresh.size) *
               static_cast<double>(byte_width(s->fresh.type));
  ctx.cost_ns = s->head_ns * static_cast<double>(s->batch * s->fresh.heads);
  ctx.set_kernel(run_append, s);
  return {};
}

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(AppendToCache, "treadle") {
  op.since(1)
      .in("past", "T", Arity::kOptional)
      .in("fresh", "T")
      .in("lengths", "tensor(int64)")  // of past and new rows together
      .in("size", "tensor(int64)")     // of the buffer
      .out("present", "T")
      .required("heads", ir::AttributeKind::kInt)
      .type("T", types::kFloatsBf16 | types::kBytes);
  op.infer(attention::infer_append)
      .prepare(attention::prepare_append)
      .shape_inputs({3})
      .can_fail()
      .no_axes("lengths say how far its entries have come");
}
