#include "ops/quant/matmul.h"

#include "kernels/dispatch.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/work.h"
#include "ops/costs.h"

namespace treadle {

namespace {

// Sizes of numpy's product of stacks of matrices. A vector is a row on the left, a column on the right.
Result<Shape> product_shape(const Shape& a, const Shape& b) {
  const bool fits = !a.empty() && !b.empty();
  const Dim k = fits ? a.back() : Dim();
  const Dim rows = fits ? b[b.size() > 1 ? b.size() - 2 : 0] : Dim();
  if (!fits || (k.is_known() && rows.is_known() && k.value() != rows.value())) {
    return error(Code::kInvalidArgument, "A has shape {} and B {}, expected as many columns of A as rows of B",
                 to_string(a), to_string(b));
  }
  auto stack_of = [](const Shape& s) { return Shape(s.begin(), s.end() - std::min<size_t>(s.size(), 2)); };
  auto stack = broadcast(stack_of(a), stack_of(b));
  if (!stack.ok()) {
    return error(Code::kInvalidArgument, "A has shape {} and B {}, whose axes before the matrices do not fit: {}",
                 to_string(a), to_string(b), std::move(stack).status().message());
  }
  Shape out = std::move(stack).value();
  if (a.size() > 1) out.push_back(a[a.size() - 2]);
  if (b.size() > 1) out.push_back(b.back());
  return out;
}

Status infer_product(InferContext& ctx, size_t b_input, ElementType element) {
  const Shape* a = ctx.shape(0);
  const Shape* b = ctx.shape(b_input);
  if (!a || !b) {
    ctx.set_output(0, element);
    return {};
  }
  TREADLE_ASSIGN(Shape out, product_shape(*a, *b));
  ctx.set_output(0, element, std::move(out));
  return {};
}

// Checks for one number for all, or one for each row of A or column of B.
Status check_lines(const InferContext& ctx, size_t i, const char* what, size_t matrix, bool rows) {
  const Shape *given = ctx.shape(i), *of = ctx.shape(matrix);
  if (!given || !of || given->size() != 1 || of->size() < 2 || (*given)[0].is_known(1)) return {};
  const Dim& lines = rows ? (*of)[of->size() - 2] : of->back();
  if (!differ((*given)[0], lines)) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected one element or one for each of {} {}", what,
               to_string(*given), lines.to_string(), rows ? "rows" : "columns");
}

Status infer_matmul_integer(InferContext& ctx) {
  TREADLE_TRY(check_lines(ctx, 2, "a zero point", 0, true));
  TREADLE_TRY(check_lines(ctx, 3, "a zero point", 1, false));
  return infer_product(ctx, 1, ElementType::kInt32);
}

// ---------------------------------------------------------------------------------------------------------------------

// A zero point: one for all, one per row of A or column of B, or separate ones for each matrix of the stack.
struct ZeroPoint {
  bool present = false, per_line = false;
  Dims strides;  // over the stack's dimensions
};

Result<ZeroPoint> zero_point(const PrepareContext& ctx, size_t i, int64_t lines, size_t stack_rank, bool of_rows) {
  ZeroPoint zero;
  zero.strides.resize(stack_rank, 0);
  zero.present = ctx.has_input(i);
  if (!zero.present) return zero;
  const Dims& dims = ctx.inputs[i].dims;
  const int64_t count = ctx.inputs[i].element_count();
  zero.per_line = count != 1;
  if (!zero.per_line) return zero;
  // [lines], or [stack..., M, 1] of A, [stack..., 1, N] of B.
  const size_t rank = dims.size();
  const bool stacked = rank >= 2;
  const int64_t own = stacked ? dims[rank - (of_rows ? 2 : 1)] : dims[0];
  const int64_t other = stacked ? dims[rank - (of_rows ? 1 : 2)] : 1;
  if (own != lines || other != 1 || (stacked && rank - 2 > stack_rank)) {
    return error(Code::kInvalidArgument, "zero point has shape {}, expected one element or one for each of {} {}",
                 to_string(dims), lines, of_rows ? "rows" : "columns");
  }
  int64_t stride = own;
  for (size_t d = stacked ? rank - 2 : 0; d-- > 0;) {
    if (dims[d] != 1) zero.strides[stack_rank - (rank - 2) + d] = stride;
    stride *= dims[d];
  }
  return zero;
}

// Steps through the matrices of a stack.
struct MatrixWalk {
  std::span<const MatMulIntegerState::Level> levels;
  MatMulIntegerState::Level at{};
  int64_t index[StackedGemm::kMaxLevels] = {};

  void step(size_t d, int64_t steps) {
    const auto& l = levels[d];
    at.a += steps * l.a, at.b += steps * l.b, at.c += steps * l.c;
    at.a_zero += steps * l.a_zero, at.b_zero += steps * l.b_zero;
  }
  void seek(int64_t matrix) {
    for (size_t d = levels.size(); d-- > 0;) {
      index[d] = matrix % levels[d].size;
      matrix /= levels[d].size;
      step(d, index[d]);
    }
  }
  void next() {
    for (size_t d = levels.size(); d-- > 0;) {
      const bool wraps = ++index[d] == levels[d].size;
      step(d, wraps ? 1 - levels[d].size : 1);
      if (!wraps) return;
      index[d] = 0;
    }
  }
};

// The epilogue with the operands of this run.
kernels::QGemmEpilogue epilogue_of(const MatMulIntegerState& s, void* const* slots, const uint32_t* operands) {
  kernels::QGemmEpilogue epilogue = s.epilogue;
  if (epilogue.output == kernels::QGemmOutput::kInt32) return epilogue;
  const auto floats = [&](size_t i) { return static_cast<const float*>(slots[operands[i]]); };
  epilogue.a_scale = floats(kScaleOfA);
  epilogue.b_scale = floats(kScaleOfB);
  if (s.has_bias) epilogue.float_bias = floats(kBias);
  if (epilogue.output == kernels::QGemmOutput::kScaled) return epilogue;
  epilogue.c_scale = floats(kScaleOfY);
  const void* zero = slots[operands[kZeroOfY]];
  epilogue.c_zero = s.y_signed ? int32_t{*static_cast<const int8_t*>(zero)} : *static_cast<const uint8_t*>(zero);
  return epilogue;
}

}  // namespace

uint32_t run_matmul_integer(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const MatMulIntegerState*>(state);
  const auto* a = static_cast<const std::byte*>(slots[operands[0]]);
  const auto* b = static_cast<const std::byte*>(slots[operands[1]]);
  const auto* a_zero = s.has_a_zero ? static_cast<const std::byte*>(slots[operands[2]]) : nullptr;
  const auto* b_zero = s.has_b_zero ? static_cast<const std::byte*>(slots[operands[3]]) : nullptr;
  auto* c = static_cast<std::byte*>(slots[operands[s.output]]);
  const kernels::QGemmEpilogue epilogue = epilogue_of(s, slots, operands);
  auto* scratch = static_cast<std::byte*>(slots[operands[s.output + 1]]);
  const int64_t size = s.plan.shape.k * s.plan.shape.n, blocks = s.grid.blocks();
  parallel_for(s.matrices * blocks, s.grid.block_ns, [&](int64_t begin, int64_t end, int worker) {
    MatrixWalk walk{s.levels};
    walk.seek(begin / blocks);
    std::byte* own = scratch + static_cast<size_t>(worker) * s.worker_scratch;
    for (int64_t block = begin % blocks; begin < end; ++begin) {
      const auto& at = walk.at;
      const void* matrix =
          s.packed ? s.packed + (size ? at.b / size : 0) * static_cast<int64_t>(s.plan.packed_b_bytes) : b + at.b;
      s.plan.run(s.plan,
                 {a + at.a, matrix, a_zero ? a_zero + at.a_zero : nullptr, b_zero ? b_zero + at.b_zero : nullptr,
                  c + at.c * static_cast<int64_t>(s.c_width), own},
                 epilogue, s.grid.range(block));
      if (++block < blocks) continue;
      block = 0;
      walk.next();
    }
  });
  return 0;
}

namespace {

// If all rows of a stack on the left are multiplied by one matrix on the right, they become a single product.
void merge_rows(kernels::QGemmShape& shape, InlineVector<MatMulIntegerState::Level, 2>& levels) {
  while (!levels.empty()) {
    const auto& inner = levels.back();
    const bool rows_follow = inner.a == shape.m * shape.a_row && inner.c == shape.m * shape.n;
    if (inner.b != 0 || inner.b_zero != 0 || shape.a_zero_per_row || !rows_follow) return;
    shape.m *= inner.size;
    levels.pop_back();
  }
}

Status pack_constant(PrepareContext& ctx, MatMulIntegerState& state) {
  const Operand& b = ctx.inputs[1];
  kernels::QGemmShape shape = state.plan.shape;
  const int64_t matrix = shape.k * shape.n;
  if (!b.constant || matrix == 0) return {};
  shape.b_packed = true;
  const kernels::QGemmPlan plan = kernels::prepare_qgemm(shape);
  const int64_t matrices = b.element_count() / matrix;
  uint64_t key = 0x7167'656d'6d;
  for (int64_t part : {shape.k, shape.n, static_cast<int64_t>(shape.a_signed), static_cast<int64_t>(shape.b_signed),
                       static_cast<int64_t>(kernels::preferred_isa())}) {
    key = key * 0x9E37'79B9'7F4A'7C15u + static_cast<uint64_t>(part);
  }
  const size_t bytes = plan.packed_b_bytes * static_cast<size_t>(matrices);
  const auto pack = [&](void* out) {
    StopPoll stop;
    for (int64_t i = 0; i < matrices; ++i) {
      kernels::pack_qgemm_b(plan, static_cast<const std::byte*>(b.constant) + i * matrix,
                            static_cast<std::byte*>(out) + static_cast<size_t>(i) * plan.packed_b_bytes, stop);
    }
  };
  TREADLE_ASSIGN(const void* const packed, ctx.packs.get(b, key, bytes, pack));
  state.packed = static_cast<const std::byte*>(packed);
  state.plan = plan;
  return {};
}

Result<MatMulIntegerState*> prepare_product(PrepareContext& ctx) {
  const Dims& a = ctx.inputs[0].dims;
  const Dims& b = ctx.inputs[1].dims;
  kernels::QGemmShape shape;
  shape.k = shape.a_row = a.back();
  shape.m = a.size() > 1 ? a[a.size() - 2] : 1;
  shape.n = shape.b_row = shape.c_row = b.size() > 1 ? b.back() : 1;
  shape.a_signed = ctx.inputs[0].type == ElementType::kInt8;
  shape.b_signed = ctx.inputs[1].type == ElementType::kInt8;
  const size_t a_stack = a.size() - std::min<size_t>(a.size(), 2), b_stack = b.size() - std::min<size_t>(b.size(), 2);
  const size_t rank = std::max(a_stack, b_stack);
  if (rank > StackedGemm::kMaxLevels) {
    return error(Code::kNotImplemented, "a product of {} stacked dimensions, at most {} are supported", rank,
                 StackedGemm::kMaxLevels);
  }
  TREADLE_ASSIGN(const ZeroPoint a_zero, zero_point(ctx, 2, shape.m, rank, true));
  TREADLE_ASSIGN(const ZeroPoint b_zero, zero_point(ctx, 3, shape.n, rank, false));
  shape.a_zero_per_row = a_zero.per_line;
  shape.b_zero_per_column = b_zero.per_line;
  auto* state = ctx.make_state<MatMulIntegerState>();
  state->levels.resize(rank);
  int64_t a_stride = shape.m * shape.k, b_stride = shape.k * shape.n, c_stride = shape.m * shape.n;
  for (size_t i = rank; i-- > 0;) {
    const int64_t of_a = i + a_stack >= rank ? a[i + a_stack - rank] : 1;
    const int64_t of_b = i + b_stack >= rank ? b[i + b_stack - rank] : 1;
    const int64_t size = of_a == 1 ? of_b : of_a;
    state->levels[i] = {size,     of_a == 1 ? 0 : a_stride, of_b == 1 ? 0 : b_stride,
                        c_stride, a_zero.strides[i],        b_zero.strides[i]};
    a_stride *= of_a, b_stride *= of_b, c_stride *= size;
  }
  merge_rows(shape, state->levels);
  state->plan = kernels::prepare_qgemm(shape);
  state->has_a_zero = a_zero.present;
  state->has_b_zero = b_zero.present;
  state->output = static_cast<uint32_t>(ctx.inputs.size());
  TREADLE_TRY(pack_constant(ctx, *state));
  for (const auto& level : state->levels) state->matrices *= level.size;
  const double ns = costs::kByteProductNs * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                    static_cast<double>(shape.k);
  state->grid = ProductGrid::cut(shape.m, shape.n, ns, state->matrices, state->plan.column_step, ctx.threads);
  const int64_t blocks = state->matrices * state->grid.blocks();
  state->worker_scratch = (state->plan.scratch_bytes + 63) / 64 * 64;
  ctx.scratch_bytes = state->worker_scratch * scratch_parts(blocks, state->grid.block_ns, ctx.threads) + 64;
  ctx.cost_ns = ns * static_cast<double>(state->matrices);
  ctx.set_kernel(run_matmul_integer, state);
  return state;
}

Status prepare_matmul_integer(PrepareContext& ctx) {
  return prepare_product(ctx).status();
}

Status prepare_scaled_matmul(PrepareContext& ctx) {
  TREADLE_ASSIGN(MatMulIntegerState * state, prepare_product(ctx));
  const ElementType y = ctx.outputs[0].type;
  kernels::QGemmEpilogue& epilogue = state->epilogue;
  epilogue.output = y == ElementType::kFloat  ? kernels::QGemmOutput::kScaled
                    : y == ElementType::kInt8 ? kernels::QGemmOutput::kInt8
                                              : kernels::QGemmOutput::kUint8;
  epilogue.b_scale_per_column = ctx.inputs[kScaleOfB].element_count() != 1;
  epilogue.divides = true;
  state->has_bias = ctx.has_input(kBias);
  state->y_signed = y == ElementType::kInt8;
  state->c_width = byte_width(y);
  return {};
}

// Checks for one element, or one for each column of the product.
Status check_columns(const InferContext& ctx, size_t i, const char* what, bool or_one) {
  const Shape *given = ctx.shape(i), *b = ctx.shape(1);
  if (!given || !b || b->empty() || (or_one && element_count(*given).is_known(1))) return {};
  if (given->size() == 1 && !differ((*given)[0], b->back())) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected one element for each of {} columns", what,
               to_string(*given), b->back().to_string());
}

Status infer_scaled_matmul(InferContext& ctx) {
  TREADLE_TRY(check_lines(ctx, 2, "a zero point", 0, true));
  TREADLE_TRY(check_lines(ctx, 3, "a zero point", 1, false));
  TREADLE_TRY(check_columns(ctx, kScaleOfB, "a scale", true));
  TREADLE_TRY(check_columns(ctx, kBias, "a bias", false));
  const ElementType quantized = ctx.element(kZeroOfY);
  return infer_product(ctx, 1, quantized == ElementType::kUndefined ? ElementType::kFloat : quantized);
}

// ---------------------------------------------------------------------------------------------------------------------

enum QLinearInput { kA, kAScale, kAZero, kB, kBScale, kBZero, kYScale, kYZero };

Status infer_qlinear_matmul(InferContext& ctx) {
  TREADLE_TRY(check_lines(ctx, kAScale, "a scale", kA, true));
  TREADLE_TRY(check_lines(ctx, kAZero, "a zero point", kA, true));
  TREADLE_TRY(check_lines(ctx, kBScale, "a scale", kB, false));
  TREADLE_TRY(check_lines(ctx, kBZero, "a zero point", kB, false));
  return infer_product(ctx, kB, ctx.element(kYZero));
}

// Scales of A's rows as a column, which broadcasts over the product.
ir::Value* as_column(LowerContext& ctx, size_t i, ir::Value* scale) {
  const Type& type = ctx.type(i);
  if (type.rank() != 1 || type.shape[0].is_known(1)) return scale;
  return ctx.call("Unsqueeze", {scale, ctx.constant_int64s({-1})});
}

ir::Value* as_float(LowerContext& ctx, size_t i) {
  if (ctx.type(i).element == ElementType::kFloat) return ctx.input(i);
  return ctx.call("Cast", {ctx.input(i)}, {ir::Attribute::of("to", static_cast<int64_t>(ElementType::kFloat))});
}

// Whether input i is a single number or, with `per_column`, one per column.
bool serves_rows(const LowerContext& ctx, size_t i, bool per_column) {
  const Type& type = ctx.type(i);
  if (!type.has_shape) return false;
  if (element_count(type.shape).is_known(1)) return true;
  return per_column && type.rank() == 1 && type.shape[0].is_known();
}

// Whether ScaledMatMulInteger can compute the node.
bool is_scaled_product(const LowerContext& ctx) {
  for (const size_t i : {kA, kB, kYZero}) {
    if (!is_integer(ctx.type(i).element)) return false;
  }
  const bool vector = ctx.type(kB).rank() < 2;
  return serves_rows(ctx, kAScale, false) && serves_rows(ctx, kBScale, !vector) && serves_rows(ctx, kYScale, false) &&
         serves_rows(ctx, kYZero, false);
}

// y = quantise((a - a_zero)(b - b_zero) * (a_scale b_scale)), with exact sums for 8-bit integers. Zero points of 8-bit
// floats are 0.
Status lower_qlinear_matmul(LowerContext& ctx) {
  if (is_scaled_product(ctx)) {
    ctx.set_output(0,
                   ctx.call("ScaledMatMulInteger",
                            {ctx.input(kA), ctx.input(kB), ctx.input(kAZero), ctx.input(kBZero), as_float(ctx, kAScale),
                             as_float(ctx, kBScale), nullptr, as_float(ctx, kYScale), ctx.input(kYZero)},
                            {}, "treadle"));
    return {};
  }
  ir::Value* scale = ctx.call("Mul", {as_column(ctx, kAScale, as_float(ctx, kAScale)), as_float(ctx, kBScale)});
  ir::Value* product;
  if (is_integer(ctx.type(kA).element) && is_integer(ctx.type(kB).element)) {
    ir::Value* sums = ctx.call("MatMulInteger", {ctx.input(kA), ctx.input(kB), ctx.input(kAZero), ctx.input(kBZero)});
    product = ctx.call("Cast", {sums}, {ir::Attribute::of("to", static_cast<int64_t>(ElementType::kFloat))});
  } else {
    ir::Value* factors[2];
    for (size_t k = 0; k < 2; ++k) {
      factors[k] = as_float(ctx, k == 0 ? kA : kB);
      if (!is_integer(ctx.type(k == 0 ? kA : kB).element)) continue;
      factors[k] = ctx.call("Sub", {factors[k], as_float(ctx, k == 0 ? kAZero : kBZero)});
    }
    product = ctx.call("MatMul", {factors[0], factors[1]});
  }
  ir::Value* y = ctx.call("Mul", {product, scale});
  const bool per_row = ctx.type(kYScale).rank() == 1 && !ctx.type(kYScale).shape[0].is_known(1);
  std::vector<ir::Attribute> attributes;
  if (per_row) attributes.push_back(ir::Attribute::of("axis", int64_t{-2}));
  ctx.set_output(0, ctx.call("QuantizeLinear", {y, as_float(ctx, kYScale), ctx.input(kYZero)}, std::move(attributes)));
  return {};
}

// Zero points per row of A and per column of B move with their axes.
Status integer_product_axes(AxisContext& c) {
  const bool rows = c.in(0) == c.rank(0) - 2, columns = c.in(1) == c.rank(1) - 1;
  if ((rows && !c.is_single(2)) || (columns && !c.is_single(3))) return looks_along("its zero points run along it");
  for (const size_t i : {2, 3}) {
    if (c.present(i) && (c.runs_along(i) || c.rank(i) > 1))
      return looks_along("its zero points have axes of their own");
  }
  return axes::matrix_product(c, 0, 1);
}

Status scaled_product_axes(AxisContext& c) {
  for (size_t i = kScaleOfA; i < c.inputs(); ++i) {
    if (!c.present(i)) continue;
    if (c.runs_along(i)) return looks_along("its scales have axes of their own");
    if (c.in(1) == c.rank(1) - 1 && !c.is_single(i)) return looks_along("its scales run along it");
  }
  return integer_product_axes(c);
}

Status quantized_product_axes(AxisContext& c) {
  for (const size_t i : {1, 2, 4, 5, 6, 7}) {
    if (c.runs_along(i) || !c.is_single(i)) return looks_along("its scales have axes of their own");
  }
  return axes::matrix_product(c, 0, 3);
}

}  // namespace

}  // namespace treadle

TREADLE_OP(MatMulInteger, "") {
  op.since(10)
      .in("A", "T1")
      .in("B", "T2")
      .in("a_zero_point", "T1", Arity::kOptional)
      .in("b_zero_point", "T2", Arity::kOptional)
      .out("Y", "T3")
      .type("T1", types::kBytes)
      .type("T2", types::kBytes)
      .type("T3", types::kInt32s);
  op.infer(infer_matmul_integer)
      .prepare(prepare_matmul_integer)
      .axes(integer_product_axes, axes::unchanged)
      .product(Product::kMatrices)
      .work(work::matrix_product<0>);
}

// y = float(sum) * (a_scale * b_scale) + bias for the sums of MatMulInteger, rounded after each step; with y_scale and
// y_zero quantised as QuantizeLinear does. b_scale and bias have one element per column; b_scale may have a single one.
TREADLE_OP(ScaledMatMulInteger, "treadle") {
  op.since(1)
      .in("A", "T1")
      .in("B", "T2")
      .in("a_zero_point", "T1", Arity::kOptional)
      .in("b_zero_point", "T2", Arity::kOptional)
      .in("a_scale", "tensor(float)")
      .in("b_scale", "tensor(float)")
      .in("bias", "tensor(float)", Arity::kOptional)
      .in("y_scale", "tensor(float)", Arity::kOptional)
      .in("y_zero_point", "T3", Arity::kOptional)
      .out("Y", "T4")
      .type("T1", types::kBytes)
      .type("T2", types::kBytes)
      .type("T3", types::kBytes)
      .type("T4", types::kBytes | types::kFloat32s);
  op.infer(infer_scaled_matmul)
      .prepare(prepare_scaled_matmul)
      .axes(scaled_product_axes, axes::unchanged)
      .product(Product::kMatrices)
      .work(work::matrix_product<0>);
}

TREADLE_OP(QLinearMatMul, "") {
  op.since(10)
      .in("a", "T1")
      .in("a_scale", "tensor(float)")
      .in("a_zero_point", "T1")
      .in("b", "T2")
      .in("b_scale", "tensor(float)")
      .in("b_zero_point", "T2")
      .in("y_scale", "tensor(float)")
      .in("y_zero_point", "T3")
      .out("y", "T3")
      .type("T1", types::kBytes)
      .type("T2", types::kBytes)
      .type("T3", types::kBytes);
  op.since(21)
      .in("a_scale", "TS")
      .in("b_scale", "TS")
      .in("y_scale", "TS")
      .type("TS", types::kFloatsTo32)
      .type("T1", types::kBytes | types::kFloat8s)
      .type("T2", types::kBytes | types::kFloat8s)
      .type("T3", types::kBytes | types::kFloat8s);
  op.infer(infer_qlinear_matmul)
      .lower(lower_qlinear_matmul)
      .axes(quantized_product_axes)
      .product(Product::kMatrices, 0, 3)
      .work(work::matrix_product<0>);
}
