// MatMul: stacks of matrices, broadcast by numpy's rule. A vector on the left is a row, on the right a column.
// PermutedMatMul reads the axes of its operands in another order.

#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/resize.h"
#include "op/work.h"

namespace treadle {

namespace {

struct MatMulState {
  WideOperand a, b;
  StackedGemm gemm;
  kernels::TileConverter narrow;    // of the result; no steps: the result is written in place
  size_t wide_result = 0;           // offset in scratch
  size_t count = 0;                 // elements of the result
  bool keeps = false;               // operand 4 is kept memory
  const int64_t* perm_a = nullptr;  // the order in which axes are read; null: unchanged
  const int64_t* perm_b = nullptr;
};

constexpr const char* kPermutations[] = {"perm_a", "perm_b"};

// The order in which operand i's axes are read; null: unchanged. It points into attributes, which outlive the kernel.
const int64_t* axes_of(const PrepareContext& ctx, size_t i) {
  const auto axes = ctx.attributes().get_ints(kPermutations[i]);
  return axes.empty() ? nullptr : axes.data();
}

void* kept(const MatMulState& s, void* const* slots, const uint32_t* operands) {
  return s.keeps ? slots[operands[4]] : nullptr;
}

uint32_t run_plain(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const MatMulState*>(state);
  s.gemm.run(slots[operands[0]], slots[operands[1]], nullptr, slots[operands[2]],
             static_cast<std::byte*>(slots[operands[3]]), kept(s, slots, operands));
  return 0;
}

uint32_t run_narrow(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const MatMulState*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[3]]);
  const void* a = s.a.get(slots[operands[0]], scratch);
  const void* b = s.gemm.packed ? nullptr : s.b.get(slots[operands[1]], scratch);
  s.gemm.run(a, b, nullptr, scratch + s.wide_result, scratch, kept(s, slots, operands));
  parallel_convert(s.narrow, scratch + s.wide_result, slots[operands[2]], s.count);
  return 0;
}

// Sizes and strides of both operands as stacks of matrices.
struct Problem {
  kernels::GemmShape shape;
  InlineVector<StackedGemm::Level, 4> stack;
};

Problem describe(const Operand& a, const Dims& a_strides, const Operand& b, const Dims& b_strides) {
  Problem p;
  const size_t a_rank = a.dims.size(), b_rank = b.dims.size();
  p.shape.k = a.dims[a_rank - 1];
  p.shape.a_col = a_strides[a_rank - 1];
  p.shape.m = a_rank > 1 ? a.dims[a_rank - 2] : 1;
  p.shape.a_row = a_rank > 1 ? a_strides[a_rank - 2] : p.shape.k;
  p.shape.n = b_rank > 1 ? b.dims[b_rank - 1] : 1;
  p.shape.b_col = b_rank > 1 ? b_strides[b_rank - 1] : 1;
  p.shape.b_row = b_rank > 1 ? b_strides[b_rank - 2] : b_strides[0];
  const size_t a_stack = a_rank > 2 ? a_rank - 2 : 0, b_stack = b_rank > 2 ? b_rank - 2 : 0;
  const size_t rank = std::max(a_stack, b_stack);
  int64_t c = p.shape.m * p.shape.n;
  p.stack.resize(rank);
  for (size_t i = rank; i-- > 0;) {
    StackedGemm::Level level{1, 0, 0, c};
    auto take = [&](const Operand& x, const Dims& strides, size_t stack, int64_t& stride) {
      if (i + stack < rank || x.dims[i + stack - rank] == 1) return;
      level.size = x.dims[i + stack - rank];
      stride = strides[i + stack - rank];
    };
    take(a, a_strides, a_stack, level.a);
    take(b, b_strides, b_stack, level.b);
    c *= level.size;
    p.stack[i] = level;
  }
  return p;
}

// Sizes of the result; false if the operands do not fit each other.
bool fit(const Operand& a, const Operand& b, Dims& out) {
  const size_t a_rank = a.dims.size(), b_rank = b.dims.size();
  if (a.dims[a_rank - 1] != b.dims[b_rank > 1 ? b_rank - 2 : 0]) return false;
  const size_t a_stack = a_rank > 2 ? a_rank - 2 : 0, b_stack = b_rank > 2 ? b_rank - 2 : 0;
  const size_t rank = std::max(a_stack, b_stack);
  out.clear();
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i + a_stack < rank ? 1 : a.dims[i + a_stack - rank];
    const int64_t y = i + b_stack < rank ? 1 : b.dims[i + b_stack - rank];
    if (x != y && x != 1 && y != 1) return false;
    out.push_back(x == 1 ? y : x);
  }
  if (a_rank > 1) out.push_back(a.dims[a_rank - 2]);
  if (b_rank > 1) out.push_back(b.dims[b_rank - 1]);
  return true;
}

Operand permuted(const Operand& x, const int64_t* axes) {
  Operand result = x;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    result.dims[i] = x.dims[static_cast<size_t>(axes[i])];
    result.strides[i] = x.strides[static_cast<size_t>(axes[i])];
  }
  return result;
}

// For operands that are read as they are stored.
bool resize_product(void* state, ResizeContext& ctx) {
  auto& s = *static_cast<MatMulState*>(state);
  Operand reordered[2];
  if (s.perm_a) reordered[0] = permuted(ctx.inputs[0], s.perm_a);
  if (s.perm_b) reordered[1] = permuted(ctx.inputs[1], s.perm_b);
  const Operand& a = s.perm_a ? reordered[0] : ctx.inputs[0];
  const Operand& b = s.perm_b ? reordered[1] : ctx.inputs[1];
  if (s.gemm.plan.shape.b_half || !fit(a, b, ctx.outputs[0].dims)) return false;
  Problem p = describe(a, a.strides, b, b.strides);
  p.shape.b_packed = s.gemm.packed != nullptr;
  StackedGemm gemm;
  gemm.packed = s.gemm.packed;
  ScratchLayout scratch;
  const ElementType type = ctx.inputs[0].type;
  if (!gemm.prepare(type, p.shape, p.stack, scratch, ctx.threads).ok()) return false;
  s.gemm = std::move(gemm);
  ctx.scratch_bytes = std::max<size_t>(scratch.size(), 64);
  return true;
}

Status prepare_product(PrepareContext& ctx, const Operand& a, const Operand& b) {
  const Operand& out = ctx.outputs[0];
  const ElementType wide = wide_type(out.type);
  auto* state = ctx.make_state<MatMulState>();
  ScratchLayout scratch;
  TREADLE_TRY(state->a.prepare(a, wide, scratch));
  TREADLE_TRY(state->b.prepare(b, wide, scratch));
  // A form is of the operands as they are stored.
  Problem p = ctx.form_only ? describe(a, a.strides, b, b.strides) : describe(a, state->a.strides, b, state->b.strides);
  p.shape.b_half = ctx.attributes().has(kHalfWeights);
  TREADLE_TRY(state->gemm.prepare(wide, p.shape, p.stack, scratch, ctx.threads));
  if (ctx.form && !p.shape.b_half) {
    ctx.form->kind = ElementwiseForm::Kind::kProduct;
    ctx.form->product = &state->gemm;
  }
  if (ctx.form_only) return {};
  if (is_contiguous(b.dims, b.strides)) TREADLE_TRY(state->gemm.pack(b, ctx.packs, wide));
  state->count = static_cast<size_t>(out.element_count());
  if (wide != out.type) {
    state->narrow = kernels::make_converter(wide, out.type);
    state->wide_result = scratch.add(state->count * byte_width(wide));
  }
  ctx.scratch_bytes = std::max<size_t>(scratch.size(), 64);
  ctx.kept_bytes = state->gemm.kept_bytes();
  state->keeps = ctx.kept_bytes > 0;
  ctx.cost_ns = state->gemm.cost_ns();
  if (wide != out.type) {
    ctx.set_kernel(run_narrow, state, nullptr, state->gemm.method(false));
  } else {
    ctx.set_kernel(run_plain, state, resize_product, state->gemm.method(false));
  }
  state->perm_a = axes_of(ctx, 0);
  state->perm_b = axes_of(ctx, 1);
  return {};
}

Status prepare_matmul(PrepareContext& ctx) {
  return prepare_product(ctx, ctx.inputs[0], ctx.inputs[1]);
}

Status prepare_permuted_matmul(PrepareContext& ctx) {
  const auto operand = [&](size_t i) {
    const int64_t* axes = axes_of(ctx, i);
    return axes ? permuted(ctx.inputs[i], axes) : ctx.inputs[i];
  };
  return prepare_product(ctx, operand(0), operand(1));
}

// ---------------------------------------------------------------------------------------------------------------------

Status infer_product(InferContext& ctx, const Shape* a, const Shape* b) {
  if (!a || !b) {
    ctx.set_output(0, ctx.element(0));
    return {};
  }
  if (a->empty() || b->empty()) {
    return error(Code::kInvalidArgument,
                 "A has shape {} and B {}, expected at least one axis each: a scalar is no matrix", to_string(*a),
                 to_string(*b));
  }
  const Dim& k = a->back();
  const Dim& rows = (*b)[b->size() > 1 ? b->size() - 2 : 0];
  if (k.is_known() && rows.is_known() && k.value() != rows.value()) {
    return error(Code::kInvalidArgument,
                 "A has shape {} and B {}, expected as many columns of A as rows of B, found {} and {}", to_string(*a),
                 to_string(*b), k.value(), rows.value());
  }
  auto stack_of = [](const Shape& s) { return Shape(s.begin(), s.end() - std::min<size_t>(s.size(), 2)); };
  auto stack = broadcast(stack_of(*a), stack_of(*b));
  if (!stack.ok()) {
    return error(Code::kInvalidArgument, "A has shape {} and B {}, whose axes before the matrices do not fit: {}",
                 to_string(*a), to_string(*b), std::move(stack).status().message());
  }
  Shape out = std::move(stack).value();
  if (a->size() > 1) out.push_back((*a)[a->size() - 2]);
  if (b->size() > 1) out.push_back(b->back());
  ctx.set_output(0, ctx.element(0), std::move(out));
  return {};
}

Status infer_matmul(InferContext& ctx) {
  return infer_product(ctx, ctx.shape(0), ctx.shape(1));
}

Status infer_permuted_matmul(InferContext& ctx) {
  Shape permuted[2];
  const Shape* shapes[2];
  for (size_t i = 0; i < 2; ++i) {
    shapes[i] = ctx.shape(i);
    const auto axes = ctx.attributes().get_ints(kPermutations[i]);
    if (!shapes[i] || axes.empty()) continue;
    if (axes.size() != shapes[i]->size()) {
      return error(Code::kInvalidArgument, "{} has {} axes, expected {}", kPermutations[i], axes.size(),
                   shapes[i]->size());
    }
    TREADLE_ASSIGN(const auto order, normalize_axes(axes, static_cast<int64_t>(axes.size()), kPermutations[i]));
    for (int64_t axis : order) permuted[i].push_back((*shapes[i])[static_cast<size_t>(axis)]);
    shapes[i] = &permuted[i];
  }
  return infer_product(ctx, shapes[0], shapes[1]);
}

Status matmul_axes(AxisContext& c) {
  return axes::matrix_product(c, 0, 1);
}

// A vector has no axes to align.
Status widen_matmul(WidenContext& c) {
  for (size_t i = 0; i < 2; ++i) {
    if (c.rank(i) >= 2) c.align(i, c.out_rank());
  }
  return {};
}

Status permuted_matmul_axes(AxisContext& c) {
  TREADLE_ASSIGN(const int64_t axis,
                 axes::matrix_product(axes::permuted(c, 0, "perm_a"), axes::permuted(c, 1, "perm_b")));
  return c.give(0, axis);
}

Work permuted_matmul_work(const ir::Node& node) {
  const auto perm = node.attributes.get_ints("perm_a");
  const size_t rank = node.inputs[0]->type.shape.size();
  const size_t summed = perm.empty() ? rank - 1 : static_cast<size_t>(perm.back());
  return {.flops = 2 * work::elements_of(node.outputs[0]) * work::size_of(node.inputs[0], rank - summed)};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(MatMul, "") {
  op.since(1).in("A", "T").in("B", "T").out("Y", "T").type("T", types::kFloats);
  op.since(9).type("T", types::kNumeric32);
  op.since(13).type("T", types::kNumeric32Bf16);
  op.infer(infer_matmul)
      .prepare(prepare_matmul)
      .strided_inputs({0, 1})
      .reads_columns(1)
      .axes(matmul_axes, widen_matmul)
      .product(Product::kMatrices)
      .work(work::matrix_product<0>);
}

// Made by opt::fuse_transposes from a MatMul of transposed operands.
TREADLE_OP(PermutedMatMul, "treadle") {
  op.since(1)
      .in("A", "T")
      .in("B", "T")
      .out("Y", "T")
      .optional("perm_a", ir::AttributeKind::kInts)
      .optional("perm_b", ir::AttributeKind::kInts)
      .type("T", types::kNumeric32Bf16);
  op.infer(infer_permuted_matmul)
      .prepare(prepare_permuted_matmul)
      .strided_inputs({0, 1})
      .reads_columns(1)
      .axes(permuted_matmul_axes)
      .work(permuted_matmul_work);
}
