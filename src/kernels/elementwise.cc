#include "kernels/elementwise.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/in_pieces.h"
#include "kernels/convert.h"
#include "kernels/costs.h"
#include "kernels/dispatch.h"
#include "kernels/isa/tables.h"
#include "kernels/types.h"

// A plan runs in one of three ways, which preparation chooses:
//   flat   all operands are contiguous (or one element) and stored in the row's type: one call of the row
//   rows   the same along the innermost dimension: a call per innermost line
//   tiles  some operand is converted or strided: lines are cut into tiles that are staged on the stack
// Where and Clip use the same loops, and call rows in their own way.

namespace treadle::kernels {

namespace {

constexpr int kResult = 3;
constexpr size_t kMaxWidth = 16;

ElementType result_type_of(ElementwiseOp op, ElementType type) {
  return info(op).bool_result ? ElementType::kBool : type;
}

// --- running ---

uint32_t call_row(const ElementwisePlan& plan, const void* const* in, void* out, size_t n) {
  if (plan.where != nullptr) {
    plan.where(static_cast<const uint8_t*>(in[0]), in[1], in[2], out, n, plan.scalar_mask);
    return kOk;
  }
  return plan.row(in[0], in[1], out, n, &plan.params);
}

uint32_t run_nothing(const ElementwisePlan&, const void* const*, void*) {
  return kOk;
}

uint32_t run_flat_unary(const ElementwisePlan& plan, const void* const* in, void* out) {
  return plan.row(in[0], nullptr, out, plan.count, &plan.params);
}

uint32_t run_flat_binary(const ElementwisePlan& plan, const void* const* in, void* out) {
  return plan.row(in[0], in[1], out, plan.count, &plan.params);
}

uint32_t run_flat_where(const ElementwisePlan& plan, const void* const* in, void* out) {
  plan.where(static_cast<const uint8_t*>(in[0]), in[1], in[2], out, plan.count, plan.scalar_mask);
  return kOk;
}

uint32_t run_line_direct(const ElementwisePlan& plan, const void* const* in, void* out) {
  return call_row(plan, in, out, plan.inner);
}

template <class T>
void gather_strided(const std::byte* from, int64_t stride, void* to, size_t n) {
  T* out = static_cast<T*>(to);
  for (size_t i = 0; i < n; ++i, from += stride) std::memcpy(out + i, from, sizeof(T));
}

template <class T>
void scatter_strided(const void* from, std::byte* to, int64_t stride, size_t n) {
  const T* in = static_cast<const T*>(from);
  for (size_t i = 0; i < n; ++i, to += stride) std::memcpy(to, in + i, sizeof(T));
}

void gather_strided(size_t width, const std::byte* from, int64_t stride, void* to, size_t n) {
  with_width(width, [&](auto zero) { gather_strided<decltype(zero)>(from, stride, to, n); });
}

void scatter_strided(size_t width, const void* from, std::byte* to, int64_t stride, size_t n) {
  with_width(width, [&](auto zero) { scatter_strided<decltype(zero)>(from, to, stride, n); });
}

// Lines up to this length get small tiles, which touch less of the stack.
constexpr size_t kSmallTile = 32;

template <size_t kElements>
struct alignas(64) Tile {
  std::byte bytes[kElements * kMaxWidth];
};

// Stages n elements of input i, from `from` on, in the row's type.
void stage_input(const ElementwisePlan& plan, int i, const std::byte* from, void* tile, void* scratch, size_t n) {
  if (plan.inner_stride[i] == plan.width[i]) return convert(plan.convert[i], from, tile, n);
  if (plan.convert[i].step_count == 0) {
    return gather_strided(plan.width[i], from, plan.inner_stride[i], tile, n);
  }
  gather_strided(plan.width[i], from, plan.inner_stride[i], scratch, n);
  convert(plan.convert[i], scratch, tile, n);
}

void unstage_result(const ElementwisePlan& plan, const void* tile, std::byte* to, void* scratch, size_t n) {
  const int64_t stride = plan.inner_stride[kResult];
  if (stride == plan.width[kResult]) return convert(plan.convert[kResult], tile, to, n);
  const void* values = tile;
  if (plan.convert[kResult].step_count != 0) {
    convert(plan.convert[kResult], tile, scratch, n);
    values = scratch;
  }
  scatter_strided(plan.width[kResult], values, to, stride, n);
}

template <size_t kElements>
uint32_t run_line_tiled(const ElementwisePlan& plan, const void* const* in, void* out) {
  Tile<kElements> tiles[4];
  Tile<kElements> scratch;
  const void* operands[3] = {in[0], in[1], in[2]};
  for (int i = 0; i < plan.inputs; ++i) {
    if ((plan.tile_mask & plan.scalar_mask) >> i & 1) {
      convert(plan.convert[i], in[i], tiles[i].bytes, 1);
      operands[i] = tiles[i].bytes;
    }
  }
  const bool result_tiled = plan.tile_mask >> kResult & 1;
  for (size_t start = 0; start < plan.inner; start += kElements) {
    const size_t n = std::min(kElements, plan.inner - start);
    for (int i = 0; i < plan.inputs; ++i) {
      if (plan.scalar_mask >> i & 1) continue;
      const std::byte* from = static_cast<const std::byte*>(in[i]) + static_cast<int64_t>(start) * plan.inner_stride[i];
      operands[i] = from;
      if (plan.tile_mask >> i & 1) {
        stage_input(plan, i, from, tiles[i].bytes, scratch.bytes, n);
        operands[i] = tiles[i].bytes;
      }
    }
    std::byte* to = static_cast<std::byte*>(out) + static_cast<int64_t>(start) * plan.inner_stride[kResult];
    if (uint32_t error = call_row(plan, operands, result_tiled ? tiles[kResult].bytes : to, n)) return error;
    if (result_tiled) unstage_result(plan, tiles[kResult].bytes, to, scratch.bytes, n);
  }
  return kOk;
}

template <ElementwisePlan::Run kLine>
uint32_t run_lines(const ElementwisePlan& plan, const void* const* in, void* out) {
  const void* operands[3] = {};
  for (int i = 0; i < plan.inputs; ++i) operands[i] = in[i];
  if (plan.outer_rank == 0) return kLine(plan, operands, out);
  int64_t index[kMaxElementwiseDims] = {};
  std::byte* to = static_cast<std::byte*>(out);
  for (;;) {
    if (uint32_t error = kLine(plan, operands, to)) return error;
    int d = plan.outer_rank - 1;
    for (; d >= 0; --d) {
      const bool wraps = ++index[d] == plan.dims[d];
      const int64_t steps = wraps ? 1 - plan.dims[d] : 1;  // back to the start of this dimension, or one step further
      for (int i = 0; i < plan.inputs; ++i) {
        operands[i] = static_cast<const std::byte*>(operands[i]) + steps * plan.strides[i][d];
      }
      to += steps * plan.strides[kResult][d];
      if (!wraps) break;
      index[d] = 0;
    }
    if (d < 0) return kOk;
  }
}

// --- Clip: the bounds become a pair in the compute type ---

template <class T>
void widest_bounds(void* pair) {
  using Limits = std::numeric_limits<T>;
  const T bounds[2] = {Limits::has_infinity ? -Limits::infinity() : Limits::min(),
                       Limits::has_infinity ? Limits::infinity() : Limits::max()};
  std::memcpy(pair, bounds, sizeof(bounds));
}

void clip_bounds(const ElementwisePlan& plan, const void* const* in, std::byte* pair) {
  with_compute_type(plan.compute, [&](auto zero) { widest_bounds<decltype(zero)>(pair); });
  for (int i = 1; i <= 2; ++i) {
    if (in[i] != nullptr) convert(plan.convert[i], in[i], pair + (i - 1) * plan.row_width[0], 1);
  }
}

template <ElementwisePlan::Run kRun>
uint32_t run_clip(const ElementwisePlan& plan, const void* const* in, void* out) {
  alignas(16) std::byte pair[16];
  clip_bounds(plan, in, pair);
  const void* operands[3] = {in[0], pair, nullptr};
  return kRun(plan, operands, out);
}

// --- preparing ---

// Dimensions of the result with the strides (in bytes) of every operand, outermost first. Sizes of 1 are left out.
// Neighbouring dimensions are merged if every operand steps through both as through one.
struct Loops {
  int rank = 0;
  int operands = 0;
  int64_t dims[kMaxElementwiseDims + 1] = {};
  int64_t strides[4][kMaxElementwiseDims + 1] = {};
};

bool merges(const Loops& loops, int64_t size, const int64_t* strides) {
  if (loops.rank == 0) return false;
  for (int i = 0; i < 4; ++i) {
    if (loops.strides[i][loops.rank - 1] != size * strides[i]) return false;
  }
  return true;
}

// Returns false if there are too many dimensions.
bool add_dimension(Loops* loops, int64_t size, const int64_t* strides) {
  if (size == 1) return true;
  if (merges(*loops, size, strides)) {
    loops->dims[loops->rank - 1] *= size;
  } else {
    if (loops->rank == kMaxElementwiseDims + 1) return false;
    loops->dims[loops->rank++] = size;
  }
  for (int i = 0; i < 4; ++i) loops->strides[i][loops->rank - 1] = strides[i];
  return true;
}

// Splits `loops` into the innermost dimension and the dimensions around it.
void set_loops(ElementwisePlan* plan, const Loops& loops) {
  plan->inner = 1;
  if (loops.rank > 0) {
    const int last = loops.rank - 1;
    plan->inner = static_cast<size_t>(loops.dims[last]);
    plan->outer_rank = static_cast<uint8_t>(last);
    for (int i = 0; i < 4; ++i) {
      plan->inner_stride[i] = loops.strides[i][last];
      std::copy_n(loops.strides[i], last, plan->strides[i]);
    }
    std::copy_n(loops.dims, last, plan->dims);
  }
}

// Sets which operands do not move and which need staging. At least one operand of a row must move.
void set_masks(ElementwisePlan* plan) {
  const int moving = plan->op == ElementwiseOp::kClip ? 1 : plan->inputs;
  for (int i = 0; i < plan->inputs; ++i) {
    if (plan->inner_stride[i] == 0) plan->scalar_mask |= 1 << i;
    const bool dense = plan->inner_stride[i] == plan->width[i] || plan->inner_stride[i] == 0;
    if (!dense || plan->convert[i].step_count != 0) plan->tile_mask |= 1 << i;
  }
  if (plan->inner_stride[kResult] != plan->width[kResult] || plan->convert[kResult].step_count != 0) {
    plan->tile_mask |= 1 << kResult;
  }
  if (plan->inner == 1) {  // one element each: strides do not matter
    for (int i = 0; i <= kResult; ++i) {
      plan->inner_stride[i] = plan->width[i];
      if (plan->convert[i].step_count == 0) plan->tile_mask &= ~(1 << i);
    }
    plan->scalar_mask = 0;
  } else if (plan->where == nullptr && (plan->scalar_mask & ((1 << moving) - 1)) == (1 << moving) - 1) {
    plan->scalar_mask &= ~1;  // no operand moves: gather the first with stride 0
    plan->tile_mask |= 1;
  }
}

void choose_row(ElementwisePlan* plan) {
  const ElementwiseRows& rows = elementwise_rows(plan->op, plan->compute);
  if (plan->op == ElementwiseOp::kClip) {
    plan->row = rows.vs;
  } else if (plan->inputs == 2 && (plan->scalar_mask & 3) != 0) {
    plan->row = plan->scalar_mask & 1 ? rows.sv : rows.vs;
  } else {
    plan->row = rows.vv;
  }
}

template <ElementwisePlan::Run kRun>
ElementwisePlan::Run clipping_if(bool clip) {
  return clip ? run_clip<kRun> : kRun;
}

ElementwisePlan::Run choose_run(const ElementwisePlan& plan) {
  if (plan.count == 0) return run_nothing;
  const bool clip = plan.op == ElementwiseOp::kClip;
  if (plan.tile_mask == 0 && plan.outer_rank == 0) {
    if (plan.where != nullptr) return run_flat_where;
    return plan.inputs == 1 ? run_flat_unary : clipping_if<run_flat_binary>(clip);
  }
  if (plan.tile_mask == 0) return clipping_if<run_lines<run_line_direct>>(clip);
  if (plan.inner <= kSmallTile) return clipping_if<run_lines<run_line_tiled<kSmallTile>>>(clip);
  return clipping_if<run_lines<run_line_tiled<kTile>>>(clip);
}

// Estimated time of an element.
double element_ns(const ElementwisePlan& plan) {
  double ns = info(plan.op).price < Price::kRemainder ? costs::kElementwiseNs : costs::kFunctionElementNs;
  for (const uint8_t width : plan.width) ns += costs::kElementwiseByteNs * width;
  return ns + costs::kConvertedElementNs * std::popcount(plan.tile_mask);
}

// Sets the row's type of every operand and the conversions to it.
void set_types(ElementwisePlan* plan, std::span<const ElementwiseOperand> inputs, ElementType output) {
  const bool where = plan->op == ElementwiseOp::kWhere;
  const ElementType computed = where ? inputs[1].type : element_type_of(plan->compute);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].type == ElementType::kUndefined) continue;
    const ElementType wanted = where && i == 0 ? ElementType::kBool : computed;
    plan->convert[i] = make_converter(inputs[i].type, wanted);
    plan->width[i] = plan->convert[i].from_width;
    plan->row_width[i] = plan->convert[i].to_width;
  }
  plan->convert[kResult] = make_converter(result_type_of(plan->op, computed), output);
  plan->row_width[kResult] = plan->convert[kResult].from_width;
  plan->width[kResult] = plan->convert[kResult].to_width;
}

Status check_types(ElementwiseOp op, std::span<const ElementwiseOperand> inputs, ElementType output) {
  const bool where = op == ElementwiseOp::kWhere;
  const ElementType first = inputs[where ? 1 : 0].type;
  if (!has_rows(op, compute_type(first)) || is_string(first)) {
    return error(Code::kNotImplemented, "{} is not defined for {}", info(op).name, name(first));
  }
  if (where) {
    TREADLE_ASSERT(inputs[0].type == ElementType::kBool && inputs[2].type == first && output == first);
    return {};
  }
  for (const ElementwiseOperand& input : inputs) {
    if (input.type != ElementType::kUndefined && !can_convert(input.type, first)) {
      return error(Code::kNotImplemented, "{} of {} and {}", info(op).name, name(first), name(input.type));
    }
  }
  if (!can_convert(result_type_of(op, first), output)) {
    return error(Code::kNotImplemented, "{} of {} as {}", info(op).name, name(first), name(output));
  }
  return {};
}

}  // namespace

ElementwisePlan ElementwisePlan::some_parts(int64_t begin, int64_t end, const void* const* in, const void** part_in,
                                            void** out) const {
  ElementwisePlan part = *this;
  int64_t steps[4];
  for (int i = 0; i < 4; ++i) steps[i] = outer_rank > 0 ? strides[i][0] : inner_stride[i];
  if (outer_rank > 0) {
    part.dims[0] = end - begin;
  } else {
    part.inner = static_cast<size_t>(end - begin);
  }
  part.count = count / static_cast<size_t>(parts()) * static_cast<size_t>(end - begin);
  part.ns *= static_cast<double>(end - begin) / static_cast<double>(parts());
  for (int i = 0; i < info(op).inputs; ++i) {
    part_in[i] = in[i] ? static_cast<const std::byte*>(in[i]) + begin * steps[i] : nullptr;
  }
  *out = static_cast<std::byte*>(*out) + begin * steps[kResult];
  return part;
}

uint32_t ElementwisePlan::run_parts(const void* const* in, void* out, int64_t begin, int64_t end) const {
  if (begin == 0 && end == parts()) return (*this)(in, out);
  const void* operands[3] = {};
  const ElementwisePlan part = some_parts(begin, end, in, operands, &out);
  return part(operands, out);
}

bool ElementwisePlan::run_in_pieces(const void* const* in, void* out, StopPoll& stop, uint32_t& failed) const {
  if (ns <= kShortNs) {
    failed = run(*this, in, out);
    return failed == kOk && !stop.after(ns);
  }
  if (outer_rank > 0 && dims[0] == 1) {
    ElementwisePlan inside = *this;
    --inside.outer_rank;
    std::copy(dims + 1, dims + outer_rank, inside.dims);
    for (int i = 0; i < 4; ++i) std::copy(strides[i] + 1, strides[i] + outer_rank, inside.strides[i]);
    return inside.run_in_pieces(in, out, stop, failed);
  }
  return in_pieces(parts(), ns / static_cast<double>(parts()), stop, [&](int64_t begin, int64_t end) {
    if (begin == 0 && end == parts()) {  // a single piece: short, but for rounding
      failed = run(*this, in, out);
      return failed == kOk;
    }
    const void* operands[3] = {};
    void* result = out;
    return some_parts(begin, end, in, operands, &result).run_in_pieces(operands, result, stop, failed);
  });
}

uint32_t ElementwisePlan::run_in_pieces(const void* const* in, void* out) const {
  StopPoll stop;
  uint32_t failed = kOk;
  run_in_pieces(in, out, stop, failed);
  return failed;
}

Status prepare_elementwise(ElementwisePlan* plan, ElementwiseOp op, std::span<const int64_t> dims,
                           std::span<const ElementwiseOperand> inputs, const ElementwiseOperand& output,
                           const ElementwiseParams& params) {
  TREADLE_ASSERT(inputs.size() == info(op).inputs);
  TREADLE_TRY(check_types(op, inputs, output.type));
  *plan = ElementwisePlan();
  plan->op = op;
  plan->params = params;
  plan->inputs = static_cast<uint8_t>(inputs.size());
  plan->compute = compute_type(inputs[op == ElementwiseOp::kWhere ? 1 : 0].type);
  set_types(plan, inputs, output.type);

  Loops loops;
  plan->count = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    plan->count *= static_cast<size_t>(dims[d]);
    int64_t strides[4] = {};
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (d < inputs[i].strides.size()) strides[i] = inputs[i].strides[d] * plan->width[i];
    }
    strides[kResult] = output.strides[d] * plan->width[kResult];
    if (op == ElementwiseOp::kClip) strides[1] = strides[2] = 0;
    if (!add_dimension(&loops, dims[d], strides)) {
      return error(Code::kLimit, "{} over more than {} dimensions that cannot be merged", info(op).name,
                   kMaxElementwiseDims);
    }
  }
  set_loops(plan, loops);
  if (op == ElementwiseOp::kWhere) plan->where = kernels().where[std::countr_zero(unsigned{plan->row_width[1]})];
  if (op == ElementwiseOp::kClip) plan->inputs = 1;  // loops ignore the bounds
  set_masks(plan);
  if (op == ElementwiseOp::kClip) plan->inputs = 2;  // the row gets the bounds
  if (op != ElementwiseOp::kWhere) choose_row(plan);
  plan->run = choose_run(*plan);
  plan->ns = element_ns(*plan) * static_cast<double>(plan->count);
  return {};
}

Status prepare_elementwise(ElementwisePlan* plan, ElementwiseOp op, ElementType type, size_t count,
                           unsigned scalar_mask, const ElementwiseParams& params) {
  const int64_t dims[] = {static_cast<int64_t>(count)};
  static constexpr int64_t kDense[] = {1};
  static constexpr int64_t kScalar[] = {0};
  ElementwiseOperand operands[3];
  const size_t inputs = info(op).inputs;
  for (size_t i = 0; i < inputs; ++i) {
    const bool condition = op == ElementwiseOp::kWhere && i == 0;
    operands[i].type = condition ? ElementType::kBool : type;
    operands[i].strides = scalar_mask >> i & 1 ? kScalar : kDense;
  }
  return prepare_elementwise(plan, op, dims, std::span(operands, inputs), {result_type_of(op, type), kDense}, params);
}

}  // namespace treadle::kernels
