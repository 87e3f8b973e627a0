// Gemm: alpha A B + beta C, with both factors optionally transposed. RaggedGemm (internal): the same for those rows of
// A that are within lengths.

#include "op/gemm.h"

#include <algorithm>
#include <cstring>

#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "op/work.h"

namespace treadle {

namespace {

struct GemmState {
  WideOperand a, b, c;
  StackedGemm gemm;
  kernels::TileConverter narrow;
  bool narrows = false, has_bias = false, keeps = false;
  uint32_t output = 0;     // operand number of the result; scratch and kept memory follow
  size_t wide_result = 0;  // offset in scratch
  size_t count = 0;
  int64_t entries = 0;  // batch entries (RaggedGemm)
};

// Rows are steps of batch entries. Rows behind the longest entry are zeros.
int64_t used_rows(const GemmState& s, const void* lengths) {
  const auto* values = static_cast<const int64_t*>(lengths);
  const int64_t longest = s.entries == 0 ? 0 : *std::max_element(values, values + s.entries);
  return std::min(longest * s.entries, s.gemm.grid.m);
}

template <bool kRagged>
uint32_t run_gemm(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const GemmState*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[s.output + 1]]);
  void* kept = s.keeps ? slots[operands[s.output + 2]] : nullptr;
  void* out = slots[operands[s.output]];
  const void* a = s.a.get(slots[operands[0]], scratch);
  const void* b = s.gemm.packed ? nullptr : s.b.get(slots[operands[1]], scratch);
  const void* c = s.has_bias ? s.c.get(slots[operands[2]], scratch) : nullptr;
  void* result = s.narrows ? scratch + s.wide_result : out;
  size_t count = s.count;
  if constexpr (kRagged) {
    const int64_t rows = used_rows(s, slots[operands[3]]);
    s.gemm.run_rows(rows, a, b, c, result, scratch, kept);
    count = static_cast<size_t>(rows * s.gemm.grid.n);
    const size_t width = s.narrows ? s.narrow.to_width : s.gemm.width;
    if (count < s.count) std::memset(static_cast<std::byte*>(out) + count * width, 0, (s.count - count) * width);
  } else {
    s.gemm.run(a, b, c, result, scratch, kept);
  }
  if (s.narrows) parallel_convert(s.narrow, result, out, count);
  return 0;
}

kernels::GemmShape describe(const PrepareContext& ctx, const GemmState& s) {
  const auto& attributes = ctx.attributes();
  const bool a_transposed = attributes.get_int("transA") != 0, b_transposed = attributes.get_int("transB") != 0;
  const Dims& a = ctx.inputs[0].dims;
  kernels::GemmShape shape;
  shape.m = ctx.outputs[0].dims[0];
  shape.n = ctx.outputs[0].dims[1];
  shape.k = a_transposed ? a[0] : a[1];
  shape.a_row = s.a.strides[a_transposed ? 1 : 0];
  shape.a_col = s.a.strides[a_transposed ? 0 : 1];
  shape.b_row = s.b.strides[b_transposed ? 1 : 0];
  shape.b_col = s.b.strides[b_transposed ? 0 : 1];
  shape.alpha = attributes.get_float("alpha");
  shape.beta = attributes.get_float("beta");
  shape.b_half = attributes.has(kHalfWeights);
  if (s.has_bias) {
    Operand c = ctx.inputs[2];
    c.strides = s.c.strides;
    const Dims strides = broadcast_strides(c, ctx.outputs[0].dims);
    shape.bias_row = strides[0];
    shape.bias_col = strides[1];
  }
  return shape;
}

template <bool kRagged>
Status prepare_gemm(PrepareContext& ctx) {
  const Operand& out = ctx.outputs[0];
  const ElementType wide = wide_type(out.type);
  auto* state = ctx.make_state<GemmState>();
  ScratchLayout scratch;
  state->has_bias = ctx.has_input(2) && ctx.attributes().get_float("beta") != 0;
  TREADLE_TRY(state->a.prepare(ctx.inputs[0], wide, scratch));
  TREADLE_TRY(state->b.prepare(ctx.inputs[1], wide, scratch));
  if (state->has_bias) TREADLE_TRY(state->c.prepare(ctx.inputs[2], wide, scratch));
  TREADLE_TRY(state->gemm.prepare(wide, describe(ctx, *state), {}, scratch, ctx.threads));
  if (ctx.form && !kRagged && !state->gemm.plan.shape.b_half) {
    ctx.form->kind = ElementwiseForm::Kind::kProduct;
    ctx.form->product = &state->gemm;
  }
  if (ctx.form_only) return {};
  const Operand& b = ctx.inputs[1];
  if (is_contiguous(b.dims, b.strides)) TREADLE_TRY(state->gemm.pack(b, ctx.packs, wide));
  state->count = static_cast<size_t>(out.element_count());
  state->narrows = wide != out.type;
  state->output = static_cast<uint32_t>(ctx.inputs.size());
  if (state->narrows) {
    state->narrow = kernels::make_converter(wide, out.type);
    state->wide_result = scratch.add(state->count * byte_width(wide));
  }
  ctx.scratch_bytes = std::max<size_t>(scratch.size(), 64);
  ctx.kept_bytes = state->gemm.kept_bytes();
  state->keeps = ctx.kept_bytes > 0;
  ctx.cost_ns = state->gemm.cost_ns();
  if (kRagged) state->entries = ctx.inputs[3].element_count();
  ctx.set_kernel(run_gemm<kRagged>, state, nullptr,
                 kRagged ? state->gemm.plan.walk : state->gemm.method(state->has_bias));
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------

Status check_bias(const Shape& bias, const Shape& out) {
  bool fits = bias.size() <= 2;
  for (size_t i = 0; fits && i < bias.size(); ++i) {
    const Dim& c = bias[i];
    const Dim& y = out[i + 2 - bias.size()];
    fits = !c.is_known() || c.is_known(1) || !y.is_known() || c.value() == y.value();
  }
  if (fits) return {};
  return error(Code::kInvalidArgument, "C has shape {}, expected one that broadcasts to the product's, {}",
               to_string(bias), to_string(out));
}

Status infer_gemm(InferContext& ctx) {
  const Shape* a = ctx.shape(0);
  const Shape* b = ctx.shape(1);
  for (const Shape* s : {a, b}) {
    if (s && s->size() != 2) {
      return error(Code::kInvalidArgument, "{} has shape {}, expected two dimensions", s == a ? "A" : "B",
                   to_string(*s));
    }
  }
  const bool a_transposed = ctx.attributes().get_int("transA") != 0;
  const bool b_transposed = ctx.attributes().get_int("transB") != 0;
  Shape out(2);
  if (a) out[0] = (*a)[a_transposed ? 1 : 0];
  if (b) out[1] = (*b)[b_transposed ? 0 : 1];
  if (a && b) {
    const Dim& k = (*a)[a_transposed ? 0 : 1];
    const Dim& rows = (*b)[b_transposed ? 1 : 0];
    if (k.is_known() && rows.is_known() && k.value() != rows.value()) {
      return error(Code::kInvalidArgument,
                   "A of shape {}{} and B of shape {}{} cannot be multiplied, expected as many columns of A as rows of "
                   "B, found {} and {}",
                   to_string(*a), a_transposed ? " (transposed)" : "", to_string(*b),
                   b_transposed ? " (transposed)" : "", k.value(), rows.value());
    }
  }
  if (const Shape* c = ctx.shape(2)) TREADLE_TRY(check_bias(*c, out));
  ctx.set_output(0, ctx.element(0), std::move(out));
  return {};
}

Status gemm_axes(AxisContext& c) {
  if (c.runs_along(0) && c.runs_along(1)) return looks_along("both operands of its product run along it");
  const bool trans_a = c.attributes().get_int("transA") != 0, trans_b = c.attributes().get_int("transB") != 0;
  int64_t axis = kNoAxis;
  if (c.runs_along(0)) axis = c.in(0) == (trans_a ? 1 : 0) ? 0 : kNoAxis;
  if (c.runs_along(1)) axis = c.in(1) == (trans_b ? 0 : 1) ? 1 : kNoAxis;
  if (axis == kNoAxis) return looks_along("its product sums along it");
  if (c.present(2)) {
    const int64_t at = axis - (2 - c.rank(2));
    if (c.runs_along(2) ? at != c.in(2) : at >= 0 && !c.size(2, at).is_known(1)) {
      return looks_along("its addend has a fixed size along it");
    }
  }
  return c.give(0, axis);
}

Work gemm_work(const ir::Node& node) {
  const bool transposed = node.attributes.get_int("transA") != 0;
  return {.flops = 2 * work::elements_of(node.outputs[0]) * work::size_of(node.inputs[0], transposed ? 2 : 1)};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Gemm, "") {
  op.since(1)
      .in("A", "T")
      .in("B", "T")
      .in("C", "T")
      .out("Y", "T")
      .attr("alpha", 1.0)
      .attr("beta", 1.0)
      .attr("broadcast", 0)
      .attr("transA", 0)
      .attr("transB", 0)
      .type("T", types::kFloats);
  op.since(6);
  op.since(7).drop_attr("broadcast");
  op.since(9).type("T", types::kNumeric32);
  op.since(11).in("C", "T", Arity::kOptional);
  op.since(13).type("T", types::kNumeric32Bf16);
  op.infer(infer_gemm)
      .prepare(prepare_gemm<false>)
      .strided_inputs({0, 1, 2})
      .axes(gemm_axes)
      .product(Product::kMatrices)
      .work(gemm_work);
}

// A [steps * entries, k], lengths [entries]: rows of steps behind all lengths are zeros.
TREADLE_OP(RaggedGemm, "treadle") {
  op.since(1)
      .in("A", "T")
      .in("B", "T")
      .in("C", "T", Arity::kOptional)
      .in("lengths", "tensor(int64)")
      .out("Y", "T")
      .attr("alpha", 1.0)
      .attr("beta", 1.0)
      .attr("transA", 0)
      .attr("transB", 0)
      .type("T", types::kFloatsBf16);
  op.infer(infer_gemm).prepare(prepare_gemm<true>).axes(gemm_axes).product(Product::kMatrices).work(gemm_work);
}
