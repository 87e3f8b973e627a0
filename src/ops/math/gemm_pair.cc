// GemmPair (internal): (A1 B1 + C) + A2 B2, what a recurrence computes in a step: its input's product and its state's
// (opt::pair_products). Which of both products comes first changes from run to run: a step that begins with the weights
// that the last one ended with finds some of them in the first-level cache. Floats add up to the same either way, since
// the two sums do not change and addition commutes.
#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "op/work.h"

namespace treadle {

namespace {

enum PairInput : size_t { kFirst, kFirstWeights, kSecond, kSecondWeights, kBias };

struct GemmPairState {
  StackedGemm first, second;
  bool has_bias = false;
  uint32_t output = 0;  // operand of the result; scratch follows it
  size_t sums = 0;      // offset in scratch of what the product that comes first gives
};

bool every_other_time(const void* what) {
  thread_local uint8_t turns[64] = {};
  return (turns[reinterpret_cast<uintptr_t>(what) / 64 % 64] ^= 1) == 0;
}

uint32_t run_gemm_pair(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const GemmPairState*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[s.output + 1]]);
  void* out = slots[operands[s.output]];
  void* sums = scratch + s.sums;
  const void* bias = s.has_bias ? slots[operands[kBias]] : nullptr;
  auto run = [&](const StackedGemm& gemm, size_t a, const void* c, void* to, const void* addend) {
    gemm.run(slots[operands[a]], slots[operands[a + 1]], c, to, scratch, addend);
  };
  if (every_other_time(state)) {
    run(s.second, kSecond, nullptr, sums, nullptr);
    run(s.first, kFirst, bias, out, sums);
  } else {
    run(s.first, kFirst, bias, sums, nullptr);
    run(s.second, kSecond, nullptr, out, sums);
  }
  return 0;
}

kernels::GemmShape describe(const PrepareContext& ctx, size_t a) {
  const Dims& strides = ctx.inputs[a + 1].strides;
  const bool transposed = ctx.attributes().get_int("transB") != 0;
  kernels::GemmShape shape;
  shape.m = ctx.outputs[0].dims[0];
  shape.n = ctx.outputs[0].dims[1];
  shape.k = ctx.inputs[a].dims[1];
  shape.a_row = ctx.inputs[a].strides[0];
  shape.a_col = ctx.inputs[a].strides[1];
  shape.b_row = strides[transposed ? 1 : 0];
  shape.b_col = strides[transposed ? 0 : 1];
  shape.b_half = ctx.attributes().has(kHalfWeights);
  return shape;
}

Status prepare_gemm_pair(PrepareContext& ctx) {
  const Operand& out = ctx.outputs[0];
  auto* state = ctx.make_state<GemmPairState>();
  ScratchLayout scratch;
  state->has_bias = ctx.has_input(kBias);
  kernels::GemmShape first = describe(ctx, kFirst);
  if (state->has_bias) {
    const Dims strides = broadcast_strides(ctx.inputs[kBias], out.dims);
    first.bias_row = strides[0];
    first.bias_col = strides[1];
  }
  TREADLE_TRY(state->first.prepare(out.type, first, {}, scratch, ctx.threads));
  TREADLE_TRY(state->second.prepare(out.type, describe(ctx, kSecond), {}, scratch, ctx.threads));
  state->first.pack(ctx.inputs[kFirstWeights], ctx.packs, out.type);
  state->second.pack(ctx.inputs[kSecondWeights], ctx.packs, out.type);
  state->sums = scratch.add(out.byte_size());
  state->output = static_cast<uint32_t>(ctx.inputs.size());
  ctx.scratch_bytes = scratch.size();
  ctx.cost_ns = state->first.cost_ns() + state->second.cost_ns();
  ctx.set_kernel(run_gemm_pair, state);
  return {};
}

Status infer_gemm_pair(InferContext& ctx) {
  Shape out(2);
  if (const Shape* a = ctx.shape(kFirst)) out[0] = (*a)[0];
  if (const Shape* b = ctx.shape(kFirstWeights)) out[1] = (*b)[ctx.attributes().get_int("transB") != 0 ? 0 : 1];
  ctx.set_output(0, ctx.element(0), std::move(out));
  return {};
}

Status gemm_pair_axes(AxisContext& c) {
  const bool bias_has_rows = c.present(4) && c.rank(4) == 2 && !c.size(4, 0).is_known(1);
  if (bias_has_rows != c.runs_along(4)) return looks_along("its addend has a fixed size along it");
  return bias_has_rows ? axes::entries_of<0b10101>(c) : axes::entries_of<0b00101>(c);
}

Work gemm_pair_work(const ir::Node& node) {
  return {.flops = 2 * work::elements_of(node.outputs[0]) *
                   (work::size_of(node.inputs[0], 1) + work::size_of(node.inputs[2], 1))};
}

}  // namespace

}  // namespace treadle

// A1 [m, k1], B1 [k1, n] or [n, k1], A2 [m, k2], B2 as B1, C broadcast to [m, n] -> Y [m, n]
TREADLE_OP(GemmPair, "treadle") {
  op.since(1)
      .in("A1", "T")
      .in("B1", "T")
      .in("A2", "T")
      .in("B2", "T")
      .in("C", "T", Arity::kOptional)
      .out("Y", "T")
      .attr("transB", 0)
      .type("T", types::kFloats32);
  op.infer(infer_gemm_pair).prepare(prepare_gemm_pair).axes(gemm_pair_axes).work(gemm_pair_work);
}
