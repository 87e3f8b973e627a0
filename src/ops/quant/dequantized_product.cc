// Products of floats with constant weights that are stored as bytes. A weight is a byte less a zero point, times a
// scale, rounded as DequantizeLinear rounds it. Made by opt::read_byte_weights from MatMul and Gemm.

#include <algorithm>

#include "op/axis_rules.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "op/work.h"

namespace treadle::quant {

namespace {

enum Input : size_t { kA, kB, kC, kScale, kZero };

struct State {
  StackedGemm gemm;
  uint32_t output = 0;  // operand number of the result; scratch and kept memory follow
  bool has_bias = false, keeps = false;
};

uint32_t run(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const State*>(state);
  s.gemm.run(slots[operands[kA]], nullptr, s.has_bias ? slots[operands[kC]] : nullptr, slots[operands[s.output]],
             static_cast<std::byte*>(slots[operands[s.output + 1]]), s.keeps ? slots[operands[s.output + 2]] : nullptr);
  return 0;
}

kernels::GemmShape describe(const PrepareContext& ctx, bool has_bias) {
  const auto& attributes = ctx.attributes();
  const bool transposed = attributes.get_int("transB") != 0;
  const Dims &a = ctx.inputs[kA].dims, &b = ctx.inputs[kB].dims;
  kernels::GemmShape shape;
  shape.n = b[transposed ? 0 : 1];
  shape.k = b[transposed ? 1 : 0];
  shape.m = 1;
  for (size_t i = 0; i + 1 < a.size(); ++i) shape.m *= a[i];
  shape.a_row = shape.k;
  shape.b_row = transposed ? 1 : shape.n;
  shape.b_col = transposed ? shape.k : 1;
  shape.alpha = attributes.get_float("alpha");
  shape.beta = attributes.get_float("beta");
  if (has_bias) {
    const Dims strides = broadcast_strides(ctx.inputs[kC], ctx.outputs[0].dims);
    shape.bias_row = strides[0];
    shape.bias_col = strides[1];
  }
  return shape;
}

Status prepare(PrepareContext& ctx) {
  auto* state = ctx.make_state<State>();
  state->has_bias = ctx.has_input(kC) && ctx.attributes().get_float("beta") != 0;
  ScratchLayout scratch;
  TREADLE_TRY(state->gemm.prepare(ElementType::kFloat, describe(ctx, state->has_bias), {}, scratch, ctx.threads));
  DequantizedOperand weights{ctx.inputs[kB], ctx.inputs[kScale], {}};
  if (ctx.has_input(kZero)) weights.zero = ctx.inputs[kZero];
  TREADLE_TRY(state->gemm.pack(weights, ctx.packs));
  state->output = static_cast<uint32_t>(ctx.inputs.size());
  ctx.scratch_bytes = std::max<size_t>(scratch.size(), 64);
  ctx.kept_bytes = state->gemm.kept_bytes();
  state->keeps = ctx.kept_bytes > 0;
  ctx.cost_ns = state->gemm.cost_ns();
  ctx.set_kernel(run, state, nullptr, state->gemm.method(state->has_bias));
  return {};
}

Status infer(InferContext& ctx) {
  const Shape *a = ctx.shape(kA), *b = ctx.shape(kB);
  if (!a || !b) {
    ctx.set_output(0, ElementType::kFloat);
    return {};
  }
  Shape out = *a;
  out.back() = (*b)[ctx.attributes().get_int("transB") != 0 ? 0 : 1];
  ctx.set_output(0, ElementType::kFloat, std::move(out));
  return {};
}

// Only rows are independent.
Status rows(AxisContext& c) {
  for (size_t i = kB; i < c.inputs(); ++i) {
    if (i != kC && c.runs_along(i)) return looks_along("its weights run along it");
  }
  const int64_t axis = c.in(kA);
  if (axis == kNoAxis || axis + 1 == c.rank(kA)) return looks_along("its product sums along it");
  if (c.present(kC)) {
    const int64_t at = axis - (2 - c.rank(kC));
    if (c.runs_along(kC) ? at != c.in(kC) : at >= 0 && !c.size(kC, at).is_known(1)) {
      return looks_along("its addend has a fixed size along it");
    }
  }
  return c.give(0, axis);
}

}  // namespace

}  // namespace treadle::quant

// A [..., k], B [k, n], or [n, k] with transB. C, if given, broadcasts to a result with two axes.
TREADLE_OP(DequantizedProduct, "treadle") {
  op.since(1)
      .in("A", "tensor(float)")
      .in("B", "T")
      .in("C", "tensor(float)", Arity::kOptional)
      .in("b_scale", "tensor(float)")
      .in("b_zero", "T", Arity::kOptional)
      .out("Y", "tensor(float)")
      .attr("alpha", 1.0)
      .attr("beta", 1.0)
      .attr("transB", 0)
      .type("T", types::kBytes);
  op.infer(quant::infer)
      .prepare(quant::prepare)
      .axes(quant::rows)
      .product(Product::kMatrices)
      .work(work::matrix_product<0>);
}
