// DynamicQuantizeGemm (internal): A·B + C for float A and 8-bit B. A is quantised as a whole, as by
// DynamicQuantizeLinear. Products are summed exactly in integers, and B stays 8-bit in memory.
//
//   A float [M, K]; B int8 or uint8 [K, N]; b_scale float, one or [N]; b_zero of B's type, one or [N], absent: 0;
//   C float [N] or [M, N], absent: 0 -> float [M, N]
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/dispatch.h"
#include "kernels/qgemm.h"
#include "kernels/quantize.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "op/work.h"
#include "ops/costs.h"

namespace treadle::rnn {

namespace {

enum Operands { kA, kB, kScale, kZero, kC };

struct State {
  size_t m, n, k;
  const kernels::QuantizeKernels* rows = nullptr;
  kernels::QGemmPlan plan;
  ProductGrid grid;
  size_t worker_scratch = 0;     // bytes per thread
  size_t quantized_at = 0;       // offset of A in scratch
  const void* packed = nullptr;  // B, if constant
  bool scale_per_column = false;
  bool c_per_row = false;
};

struct Quantization {
  float scale = 1;
  uint8_t zero = 0;
};

Quantization choose(const State& state, const float* a) {
  const auto [low, high] = state.rows->range(a, state.m * state.k);
  const float scale = (high - low) / 255.0f;
  if (!(scale > 0)) return {};
  return {scale, static_cast<uint8_t>(std::nearbyint(std::clamp(-low / scale, 0.0f, 255.0f)))};
}

uint32_t run(const void* opaque, void* const* slots, const uint32_t* operands) {
  const State& state = *static_cast<const State*>(opaque);
  const float* a = static_cast<const float*>(slots[operands[kA]]);
  const float* c = static_cast<const float*>(slots[operands[kC]]);
  float* y = static_cast<float*>(slots[operands[kC + 1]]);
  std::byte* scratch = static_cast<std::byte*>(slots[operands[kC + 2]]);
  uint8_t* quantized = reinterpret_cast<uint8_t*>(scratch + state.quantized_at);

  const Quantization q = choose(state, a);
  state.rows->to_bytes(a, q.scale, q.zero, false, quantized, state.m * state.k);
  if (state.c_per_row) std::memcpy(y, c, state.m * state.n * sizeof(float));
  kernels::QGemmEpilogue epilogue;
  epilogue.output = kernels::QGemmOutput::kScaled;
  epilogue.a_scale = &q.scale;
  epilogue.b_scale = static_cast<const float*>(slots[operands[kScale]]);
  epilogue.b_scale_per_column = state.scale_per_column;
  epilogue.accumulate = state.c_per_row;
  if (!state.c_per_row) epilogue.float_bias = c;
  const void* b = state.packed ? state.packed : slots[operands[kB]];
  parallel_for(state.grid.blocks(), state.grid.block_ns, [&](int64_t begin, int64_t end, int worker) {
    std::byte* own = scratch + static_cast<size_t>(worker) * state.worker_scratch;
    for (int64_t block = begin; block < end; ++block) {
      state.plan.run(state.plan, {quantized, b, &q.zero, slots[operands[kZero]], y, own}, epilogue,
                     state.grid.range(block));
    }
  });
  return 0;
}

kernels::QGemmPlan plan_product(const PrepareContext& ctx, const State& state) {
  kernels::QGemmShape shape;
  shape.m = static_cast<int64_t>(state.m);
  shape.n = static_cast<int64_t>(state.n);
  shape.k = static_cast<int64_t>(state.k);
  shape.a_row = shape.k;
  shape.b_row = shape.n;
  shape.c_row = shape.n;
  shape.b_signed = ctx.inputs[kB].type == ElementType::kInt8;
  shape.b_packed = ctx.inputs[kB].constant != nullptr;
  shape.b_zero_per_column = ctx.has_input(kZero) && ctx.inputs[kZero].element_count() > 1;
  return kernels::prepare_qgemm(shape);
}

constexpr uint64_t kPackedLayout = 0x71676d6d;  // of PackCache; a process uses a single instruction set for it

Status prepare(PrepareContext& ctx) {
  State* state = ctx.make_state<State>();
  state->m = static_cast<size_t>(ctx.inputs[kA].dims[0]);
  state->k = static_cast<size_t>(ctx.inputs[kA].dims[1]);
  state->n = static_cast<size_t>(ctx.inputs[kB].dims[1]);
  state->rows = &kernels::quantize_kernels();
  state->plan = plan_product(ctx, *state);
  state->scale_per_column = ctx.inputs[kScale].element_count() > 1;
  state->c_per_row = ctx.has_input(kC) && ctx.inputs[kC].rank() == 2;
  if (const void* b = ctx.inputs[kB].constant) {
    const uint64_t layout = kPackedLayout * 64 + static_cast<uint64_t>(kernels::preferred_isa());
    const auto pack = [&](void* out) { kernels::pack_qgemm_b(state->plan, b, out); };
    TREADLE_ASSIGN(state->packed, ctx.packs.get(ctx.inputs[kB], layout, state->plan.packed_b_bytes, pack));
  }
  ctx.cost_ns = costs::kByteProductNs * static_cast<double>(state->m * state->n) * static_cast<double>(state->k);
  state->grid =
      ProductGrid::cut(state->plan.shape.m, state->plan.shape.n, ctx.cost_ns, 1, state->plan.column_step, ctx.threads);
  state->worker_scratch = (state->plan.scratch_bytes + 63) / 64 * 64;
  state->quantized_at = state->worker_scratch * scratch_parts(state->grid.blocks(), state->grid.block_ns, ctx.threads);
  ctx.scratch_bytes = state->quantized_at + state->m * state->k;
  ctx.set_kernel(run, state);
  return {};
}

Status infer(InferContext& ctx) {
  const Shape *a = ctx.shape(kA), *b = ctx.shape(kB);
  if (!a || !b || a->size() != 2 || b->size() != 2) {
    ctx.set_output(0, ElementType::kFloat, Shape{Dim(), Dim()});
  } else {
    ctx.set_output(0, ElementType::kFloat, Shape{(*a)[0], (*b)[1]});
  }
  return {};
}

}  // namespace

}  // namespace treadle::rnn

TREADLE_OP(DynamicQuantizeGemm, "treadle") {
  op.since(1)
      .in("A", "tensor(float)")
      .in("B", "T")
      .in("b_scale", "tensor(float)")
      .in("b_zero", "T", Arity::kOptional)
      .in("C", "tensor(float)", Arity::kOptional)
      .out("Y", "tensor(float)")
      .type("T", types::kBytes);
  op.infer(rnn::infer)
      .prepare(rnn::prepare)
      .no_axes("one scale is that of all elements")
      .product(Product::kMatrices)
      .work(work::matrix_product<0>);
}
