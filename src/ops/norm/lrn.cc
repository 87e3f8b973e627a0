// LRN: x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ^ beta.

#include <algorithm>
#include <cstring>

#include "base/in_pieces.h"
#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "ops/costs.h"
#include "ops/norm/channels.h"

namespace treadle {

namespace {

Status infer_lrn(InferContext& ctx) {
  const int64_t size = ctx.attributes().get_int("size");
  if (size < 1) return error(Code::kInvalidModel, "attribute size is {}, expected at least 1", size);
  const Shape* x = ctx.shape(0);
  if (x && x->size() < 2) {
    return error(Code::kInvalidArgument, "X has shape {}, expected [N,C,...]", to_string(*x));
  }
  return infer_like_input(ctx);
}

struct LrnState {
  AxisView view;
  size_t before = 0, after = 0;  // channels of the window before and behind its own
  kernels::ElementwiseParams affine;
  double exponent = 0;
  double channel_ns = 0;
  kernels::Row multiply, add, scale, power;
  WideOperand x;
  norm::WideResult y;
  size_t squares = 0;  // [channels, inner] in scratch
};

// One channel of an image.
template <class W>
void normalize_channel(const LrnState& s, const W* x, const W* squares, size_t c, W* y) {
  const size_t channels = s.view.n, inner = s.view.inner;
  const W exponent = static_cast<W>(s.exponent);
  const size_t first = c - std::min(c, s.before), last = std::min(c + s.after, channels - 1);
  in_pieces(static_cast<int64_t>(inner), s.channel_ns / static_cast<double>(inner), [&](int64_t begin, int64_t end) {
    const size_t n = static_cast<size_t>(end - begin);
    W* row = y + c * inner + begin;
    std::memcpy(row, squares + first * inner + begin, n * sizeof(W));
    for (size_t k = first + 1; k <= last; ++k) s.add(row, squares + k * inner + begin, row, n, nullptr);
    s.scale(row, nullptr, row, n, &s.affine);
    s.power(row, &exponent, row, n, nullptr);
    s.multiply(row, x + c * inner + begin, row, n, nullptr);
  });
}

template <class W>
uint32_t run_lrn(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const LrnState*>(state);
  const auto [batch, channels, inner] = s.view;
  auto* scratch = static_cast<std::byte*>(slots[operands[2]]);
  const auto* x = static_cast<const W*>(s.x.get(slots[operands[0]], scratch));
  void* out = slots[operands[1]];
  auto* y = static_cast<W*>(s.y.begin(out, scratch));
  auto* squares = reinterpret_cast<W*>(scratch + s.squares);
  const size_t image = channels * inner;
  for (size_t n = 0; n < batch; ++n, x += image, y += image) {
    parallel_for(static_cast<int64_t>(image), costs::kRowElementNs, [&](int64_t begin, int64_t end, int) {
      s.multiply(x + begin, x + begin, squares + begin, static_cast<size_t>(end - begin), nullptr);
    });
    parallel_for(static_cast<int64_t>(channels), s.channel_ns, [&](int64_t begin, int64_t end, int) {
      for (; begin < end; ++begin) normalize_channel(s, x, squares, static_cast<size_t>(begin), y);
    });
  }
  s.y.finish(out, scratch);
  return 0;
}

Status prepare_lrn(PrepareContext& ctx) {
  using kernels::ElementwiseOp;
  const ElementType wide = norm::wide_float(ctx.inputs[0].type);
  const ComputeType type = compute_type(wide);
  const auto& attributes = ctx.attributes();
  const auto size = static_cast<size_t>(attributes.get_int("size"));
  auto* state = ctx.make_state<LrnState>();
  state->view = view_along(ctx.inputs[0].dims, 1);
  state->before = (size - 1) / 2;
  state->after = size - 1 - state->before;
  state->affine = {attributes.get_float("alpha") / static_cast<double>(size), attributes.get_float("bias")};
  state->exponent = -attributes.get_float("beta");
  state->multiply = kernels::elementwise_rows(ElementwiseOp::kMul, type).vv;
  state->add = kernels::elementwise_rows(ElementwiseOp::kAdd, type).vv;
  state->scale = kernels::elementwise_rows(ElementwiseOp::kAffine, type).vv;
  state->power = kernels::elementwise_rows(ElementwiseOp::kPow, type).vs;
  state->channel_ns = static_cast<double>(state->view.inner) *
                      (costs::kLrnPowerNs + costs::kRowElementNs * static_cast<double>(std::min(size, state->view.n)));
  ctx.cost_ns = state->channel_ns * static_cast<double>(state->view.outer * state->view.n);
  ScratchLayout scratch;
  TREADLE_TRY(state->x.prepare(ctx.inputs[0], wide, scratch));
  state->y.prepare(ctx.outputs[0], wide, scratch);
  state->squares = scratch.add(state->view.n * state->view.inner * byte_width(wide));
  ctx.scratch_bytes = scratch.size() + 64;
  ctx.set_kernel(wide == ElementType::kFloat ? run_lrn<float> : run_lrn<double>, state);
  return {};
}

Status lrn_axes(AxisContext& c) {
  if (c.in(0) == 1) return looks_along("it normalises over axis 1");
  return c.give(0, c.in(0));
}

}  // namespace

}  // namespace treadle

TREADLE_OP(LRN, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .attr("alpha", 1e-04)
      .attr("beta", 0.75)
      .attr("bias", 1.0)
      .required("size", ir::AttributeKind::kInt)
      .type("T", types::kFloats);
  op.since(13).type("T", types::kFloatsBf16);
  op.infer(infer_lrn).prepare(prepare_lrn).axes(lrn_axes);
}
