// softmax(masks(scale · A B)) V for stacks of matrices, one block of rows at a time. A block of scores stays in the
// second-level cache between the two products, and the scores of all rows are never in memory at once. The arithmetic
// is that of MatMul, Mul, Add, Where, Softmax and MatMul.

#include <algorithm>

#include "base/caches.h"
#include "base/stop.h"
#include "op/attended_masks.h"
#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "op/work.h"
#include "ops/costs.h"

namespace treadle {

namespace {

enum Input : size_t { kLeft, kRight, kValues, kInputs };
constexpr const char* kPermutations[] = {"perm_a", "perm_b", "perm_v"};

struct AttendedState {
  // One dimension of the stack; strides in elements.
  struct Level {
    int64_t size;
    int64_t strides[kInputs + 1];  // the last one is the result's
  };
  // An input of a mask, broadcast to the scores.
  struct Spread {
    size_t width;  // bytes of an element
    Dims strides;  // of the stack, of rows, of columns; in elements
    int64_t row() const { return strides[strides.size() - 2]; }
    int64_t column() const { return strides.back(); }
  };
  InlineVector<Level, 4> levels;
  std::vector<AttendedMask> masks;
  std::vector<Spread> spreads;  // for inputs from kInputs on
  bool adds_first = false;      // the first mask is the bias of the product
  int64_t matrices = 1, rows = 0, columns = 0;
  int64_t block = 0, blocks = 0;  // rows per block; blocks per matrix
  int64_t unit = 1;               // blocks per unit of work: one, or all of a matrix
  kernels::GemmPlan scores, sums;
  size_t packed_right = 0, packed_values = 0, score_rows = 0, gemm = 0;  // offsets in a worker's scratch
  size_t worker_scratch = 0;
  uint32_t scratch = 0;  // operand number
  double block_ns = 0;
};

// The blocks that one worker computes.
class Blocks {
 public:
  Blocks(const AttendedState& s, void* const* slots, const uint32_t* operands, int worker)
      : s_(s), scratch_(static_cast<std::byte*>(slots[operands[s.scratch]]) + size_t(worker) * s.worker_scratch) {
    for (size_t i = 0; i < kInputs; ++i) operands_[i] = static_cast<float*>(slots[operands[i]]);
    operands_[kInputs] = static_cast<float*>(slots[operands[kInputs + s.spreads.size()]]);
    for (size_t i = 0; i < s.spreads.size(); ++i)
      spread_.push_back(static_cast<std::byte*>(slots[operands[kInputs + i]]));
    spread_at_ = spread_;
  }

  void run(int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i == begin || i % s_.blocks == 0) enter(i / s_.blocks);
      const int64_t row = i % s_.blocks * s_.block;
      run_rows(row, std::min(s_.block, s_.rows - row));
      if (stop_.after(s_.block_ns)) return;
    }
  }

 private:
  float* part(size_t offset) const { return reinterpret_cast<float*>(scratch_ + offset); }

  // Selects the matrix of the stack whose rows come next.
  void enter(int64_t matrix) {
    std::copy_n(operands_, kInputs + 1, at_);
    spread_at_ = spread_;
    for (size_t d = s_.levels.size(); d-- > 0; matrix /= s_.levels[d].size) {
      const int64_t index = matrix % s_.levels[d].size;
      for (size_t i = 0; i <= kInputs; ++i) at_[i] += index * s_.levels[d].strides[i];
      for (size_t i = 0; i < spread_at_.size(); ++i) {
        spread_at_[i] += index * s_.spreads[i].strides[d] * static_cast<int64_t>(s_.spreads[i].width);
      }
    }
    kernels::pack_b(s_.scores, at_[kRight], part(s_.packed_right));
    kernels::pack_b(s_.sums, at_[kValues], part(s_.packed_values));
  }

  void run_rows(int64_t row, int64_t count) {
    float* scores = part(s_.score_rows);
    kernels::run_gemm_rows(s_.scores, count, at_[kLeft] + row * s_.scores.shape.a_row, part(s_.packed_right),
                           s_.adds_first ? spread_row(0, row) : nullptr, scores, part(s_.gemm));
    for (int64_t r = 0; r < count; ++r) mask_row(row + r, scores + r * s_.columns);
    kernels::softmax(kernels::SoftmaxKind::kSoftmax, ElementType::kFloat, scores, scores, static_cast<size_t>(count),
                     static_cast<size_t>(s_.columns), 1);
    kernels::run_gemm_rows(s_.sums, count, scores, part(s_.packed_values), nullptr,
                           at_[kInputs] + row * s_.sums.shape.c_row, part(s_.gemm));
  }

  const std::byte* spread_row(size_t i, int64_t row) const {
    return spread_at_[i] + row * s_.spreads[i].row() * static_cast<int64_t>(s_.spreads[i].width);
  }

  void mask_row(int64_t row, float* scores) const {
    size_t input = s_.adds_first ? 1 : 0;
    for (size_t m = input; m < s_.masks.size(); ++m) {
      const auto numbers_at = [&](size_t i) { return reinterpret_cast<const float*>(spread_row(i, row)); };
      if (s_.masks[m] == AttendedMask::kAdd) {
        const float* numbers = numbers_at(input);
        by_step(s_.spreads[input].column(), [&](auto step) {
          for (int64_t j = 0; j < s_.columns; ++j) scores[j] += numbers[j * step];
        });
        input += 1;
      } else {
        replace(s_.masks[m] == AttendedMask::kReplace, spread_row(input, row), s_.spreads[input].column(),
                numbers_at(input + 1), s_.spreads[input + 1].column(), scores);
        input += 2;
      }
    }
  }

  void replace(bool where, const std::byte* condition, int64_t condition_step, const float* numbers,
               int64_t numbers_step, float* scores) const {
    by_step(condition_step, [&](auto every) {
      by_step(numbers_step, [&](auto step) {
        for (int64_t j = 0; j < s_.columns; ++j) {
          const bool holds = condition[j * every] != std::byte{0};
          scores[j] = holds == where ? numbers[j * step] : scores[j];
        }
      });
    });
  }

  // Calls fn(step) with a compile-time step: 0 for inputs that are broadcast along a row, 1 for others.
  template <class Fn>
  static void by_step(int64_t step, const Fn& fn) {
    step == 0 ? fn(std::integral_constant<int64_t, 0>()) : fn(std::integral_constant<int64_t, 1>());
  }

  const AttendedState& s_;
  std::byte* scratch_;
  float* operands_[kInputs + 1];
  float* at_[kInputs + 1];
  InlineVector<const std::byte*, 4> spread_, spread_at_;
  StopPoll stop_;
};

uint32_t run_attended(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const AttendedState*>(state);
  const double unit_ns = s.block_ns * static_cast<double>(s.unit);
  parallel_for(s.matrices * s.blocks / s.unit, unit_ns, [&](int64_t begin, int64_t end, int worker) {
    Blocks(s, slots, operands, worker).run(begin * s.unit, end * s.unit);
  });
  return 0;
}

// Input i with its axes in the order in which they are read.
Operand reordered(const PrepareContext& ctx, size_t i) {
  Operand x = ctx.inputs[i];
  const auto axes = ctx.attributes().get_ints(kPermutations[i]);
  for (size_t d = 0; d < axes.size(); ++d) {
    x.dims[d] = ctx.inputs[i].dims[static_cast<size_t>(axes[d])];
    x.strides[d] = ctx.inputs[i].strides[static_cast<size_t>(axes[d])];
  }
  return x;
}

// The scores of a block take a quarter of the second-level cache. Blocks are of about equal height.
void cut_rows(AttendedState& s) {
  constexpr int64_t kFewest = 24, kStep = 12;  // whole register tiles of 12 rows (AVX-512) and of 6 (AVX2)
  const auto bytes = static_cast<int64_t>(caches().second / 4);
  const int64_t most = std::max(kFewest, bytes / (s.columns * int64_t{sizeof(float)}));
  const int64_t wanted = (s.rows + most - 1) / most;
  s.block = std::min(s.rows, ((s.rows + wanted - 1) / wanted + kStep - 1) / kStep * kStep);
  s.blocks = (s.rows + s.block - 1) / s.block;
}

// A worker has to pack the matrices of a block first. So if that spreads the work evenly over the threads, a unit of
// work is a whole matrix.
void choose_units(AttendedState& s, int threads) {
  constexpr int64_t kMany = 8;
  if (s.matrices % threads == 0 || s.matrices >= kMany * threads) s.unit = s.blocks;
}

void prepare_masks(const PrepareContext& ctx, const Dims& scores, AttendedState& s) {
  for (const int64_t mask : ctx.attributes().get_ints("masks")) s.masks.push_back(static_cast<AttendedMask>(mask));
  for (size_t i = kInputs; i < ctx.inputs.size(); ++i) {
    s.spreads.push_back({byte_width(ctx.inputs[i].type), broadcast_strides(ctx.inputs[i], scores)});
  }
  s.adds_first = !s.masks.empty() && s.masks[0] == AttendedMask::kAdd;
}

Status prepare_attended(PrepareContext& ctx) {
  const Operand a = reordered(ctx, kLeft), b = reordered(ctx, kRight), v = reordered(ctx, kValues);
  const Operand& out = ctx.outputs[0];
  const size_t stack = a.dims.size() - 2, row = stack, column = stack + 1;
  auto* s = ctx.make_state<AttendedState>();
  for (size_t d = 0; d < stack; ++d) {
    s->levels.push_back({a.dims[d], {a.strides[d], b.strides[d], v.strides[d], out.strides[d]}});
    s->matrices *= a.dims[d];
  }
  s->rows = a.dims[row];
  s->columns = b.dims[column];
  if (s->rows == 0 || s->columns == 0) s->matrices = 0;
  if (s->matrices > 0) {
    cut_rows(*s);
    choose_units(*s, ctx.threads);
  }
  kernels::GemmShape scores{.m = s->block, .n = s->columns, .k = a.dims[column]};
  scores.a_row = a.strides[row];
  scores.a_col = a.strides[column];
  scores.b_row = b.strides[row];
  scores.b_col = b.strides[column];
  scores.c_row = s->columns;
  scores.alpha = static_cast<double>(ctx.attributes().get_float("scale", 1));
  Dims all = a.dims;
  all[column] = s->columns;
  prepare_masks(ctx, all, *s);
  if (s->adds_first) {
    scores.bias_row = s->spreads[0].row();
    scores.bias_col = s->spreads[0].column();
  }
  scores.b_packed = true;
  s->scores = kernels::prepare_gemm(ComputeType::kF32, scores);
  kernels::GemmShape sums{.m = s->block, .n = v.dims[column], .k = s->columns};
  sums.a_row = s->columns;
  sums.b_row = v.strides[row];
  sums.b_col = v.strides[column];
  sums.c_row = out.strides[row];
  sums.b_packed = true;
  s->sums = kernels::prepare_gemm(ComputeType::kF32, sums);
  ScratchLayout scratch;
  s->packed_right = scratch.add(s->scores.packed_b_bytes);
  s->packed_values = scratch.add(s->sums.packed_b_bytes);
  s->score_rows = scratch.add(static_cast<size_t>(s->block * s->columns) * sizeof(float));
  s->gemm = scratch.add(std::max(s->scores.scratch_bytes, s->sums.scratch_bytes));
  s->worker_scratch = scratch.size();
  s->scratch = ctx.scratch_operand();
  s->block_ns = static_cast<double>(s->block * s->columns) *
                (costs::kAttentionScoreNs + costs::kAttentionProductNs * static_cast<double>(scores.k + sums.n));
  const double unit_ns = s->block_ns * static_cast<double>(s->unit);
  const int64_t units = s->matrices * s->blocks / s->unit;
  ctx.cost_ns = unit_ns * static_cast<double>(units);
  ctx.scratch_bytes = std::max<size_t>(64, s->worker_scratch * scratch_parts(units, unit_ns, ctx.threads));
  ctx.set_kernel(run_attended, s);
  return {};
}

// The axis of input i that is read as axis `at`.
size_t axis_at(const ir::Attributes& attributes, size_t i, size_t at) {
  const auto axes = attributes.get_ints(kPermutations[i]);
  return axes.empty() ? at : static_cast<size_t>(axes[at]);
}

Status infer_attended(InferContext& ctx) {
  const Shape *a = ctx.shape(kLeft), *v = ctx.shape(kValues);
  if (!a || !v) {
    ctx.set_output(0, ctx.element(0));
    return {};
  }
  Shape out;
  for (size_t d = 0; d + 1 < a->size(); ++d) out.push_back((*a)[axis_at(ctx.attributes(), kLeft, d)]);
  out.push_back((*v)[axis_at(ctx.attributes(), kValues, v->size() - 1)]);
  ctx.set_output(0, ctx.element(0), std::move(out));
  return {};
}

Status attended_axes(AxisContext& c) {
  if (c.inputs() > kInputs) return looks_along("its masks spread over its scores");
  const auto read = [&](size_t i) { return axes::permuted(c, i, kPermutations[i]); };
  const axes::Matrices left = read(kLeft), right = read(kRight);
  axes::Matrices scores{left.shape, kNoAxis};
  scores.shape.back() = right.shape.back();
  TREADLE_ASSIGN(scores.axis, axes::matrix_product(left, right));
  if (scores.axis == scores.rank() - 1) return looks_along("its softmax runs along it");
  TREADLE_ASSIGN(const int64_t axis, axes::matrix_product(scores, read(kValues)));
  return c.give(0, axis);
}

Work attended_work(const ir::Node& node) {
  const size_t rank = node.inputs[kLeft]->type.shape.size();
  const auto size = [&](size_t i, size_t at) {
    return work::size_of(node.inputs[i], rank - axis_at(node.attributes, i, at));
  };
  const double sums = work::elements_of(node.outputs[0]), columns = size(kValues, rank - 2);
  const double scores = sums / std::max(1.0, size(kValues, rank - 1)) * columns;
  return {.flops = 2 * (scores * size(kLeft, rank - 1) + sums * columns), .functions = scores};
}

}  // namespace

}  // namespace treadle

// Made by opt::fuse_attention from two products and the operators between them. Operands have equal ranks and stacks of
// equal sizes.
TREADLE_OP(AttendedValues, "treadle") {
  op.since(1)
      .in("A", "T")
      .in("B", "T")
      .in("V", "T")
      .in("masks", "M", Arity::kVariadicMixed, 0)
      .out("Y", "T")
      .attr("scale", 1.0)
      .optional("masks", ir::AttributeKind::kInts)
      .optional("perm_a", ir::AttributeKind::kInts)
      .optional("perm_b", ir::AttributeKind::kInts)
      .optional("perm_v", ir::AttributeKind::kInts)
      .type("M", types::kAllTensors)
      .type("T", types::kFloats);
  op.infer(infer_attended).prepare(prepare_attended).strided_inputs({0, 1, 2}).axes(attended_axes).work(attended_work);
}
