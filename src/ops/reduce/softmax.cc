// Softmax, LogSoftmax, Hardmax. Before opset 13 the tensor is flattened to two dimensions at `axis`, and they run along
// the second.

#include <fmt/format.h>

#include <cstring>

#include "kernels/convert.h"
#include "kernels/normalize.h"
#include "kernels/reduce.h"
#include "op/axis.h"
#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "op/resize.h"
#include "op/work.h"
#include "ops/costs.h"

namespace treadle {

namespace {

Result<int64_t> softmax_axis(const ir::Attributes& attributes, int version, int64_t rank) {
  const int64_t axis = attributes.get_int("axis");
  if (rank == 0) return int64_t{0};
  if (version < 13 && axis == rank) return rank;  // [all, 1]
  return normalize_axis(axis, rank);
}

Status infer_softmax(InferContext& ctx) {
  if (ctx.shape(0)) TREADLE_TRY(softmax_axis(ctx.attributes(), ctx.version(), ctx.input(0).rank()).status());
  return infer_like_input(ctx);
}

Result<AxisView> softmax_view(const PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  TREADLE_ASSIGN(const int64_t axis, softmax_axis(ctx.attributes(), ctx.version(), x.rank()));
  return view_along(x.dims, axis, ctx.version() < 13 ? x.rank() : axis + 1);
}

struct SoftmaxState {
  AxisView view;
  ElementType type;
  bool along_last = false;
};

bool resize_softmax(void* state, ResizeContext& ctx) {
  auto& s = *static_cast<SoftmaxState*>(state);
  if (!s.along_last) return false;
  const Dims& dims = ctx.inputs[0].dims;
  const auto n = static_cast<size_t>(dims.back());
  s.view = {n == 0 ? 0 : static_cast<size_t>(element_count_unchecked(dims)) / n, n, 1};
  ctx.outputs[0].dims = dims;
  return true;
}

template <kernels::SoftmaxKind kKind>
uint32_t run_softmax(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const SoftmaxState*>(state);
  const auto row = static_cast<int64_t>(s.view.n * s.view.inner);
  const auto bytes = row * static_cast<int64_t>(byte_width(s.type));
  parallel_for(static_cast<int64_t>(s.view.outer), costs::kSoftmaxElementNs * static_cast<double>(row),
               [&](int64_t begin, int64_t end, int) {
                 kernels::softmax(kKind, s.type, static_cast<const std::byte*>(slots[operands[0]]) + begin * bytes,
                                  static_cast<std::byte*>(slots[operands[1]]) + begin * bytes,
                                  static_cast<size_t>(end - begin), s.view.n, s.view.inner);
               });
  return 0;
}

template <kernels::SoftmaxKind kKind>
Status prepare_softmax(PrepareContext& ctx) {
  TREADLE_ASSIGN(const AxisView view, softmax_view(ctx));
  const int64_t rank = ctx.inputs[0].rank();
  const int64_t axis = ctx.attributes().get_int("axis");
  ctx.cost_ns = static_cast<double>(view.outer * view.n * view.inner);
  auto* state = ctx.make_state<SoftmaxState>(SoftmaxState{view, ctx.inputs[0].type});
  ctx.set_kernel(run_softmax<kKind>, state, resize_softmax);
  state->along_last = rank > 0 && ctx.version() >= 13 && (axis == -1 || axis == rank - 1);
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------

struct HardmaxState {
  AxisView view;
  ElementType type;
  size_t width;
  alignas(8) std::byte one[8];
};

uint32_t run_hardmax(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const HardmaxState*>(state);
  const auto [outer, n, inner] = s.view;
  if (outer * n * inner == 0) return 0;
  auto* out = static_cast<std::byte*>(slots[operands[1]]);
  auto* position = static_cast<int64_t*>(slots[operands[2]]);
  kernels::arg_max(s.type, slots[operands[0]], position, outer, n, inner, false);
  std::memset(out, 0, outer * n * inner * s.width);
  for (size_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < inner; ++i) {
      const auto k = static_cast<size_t>(position[o * inner + i]);
      std::memcpy(out + ((o * n + k) * inner + i) * s.width, s.one, s.width);
    }
  }
  return 0;
}

Status prepare_hardmax(PrepareContext& ctx) {
  TREADLE_ASSIGN(const AxisView view, softmax_view(ctx));
  const ElementType type = ctx.inputs[0].type;
  auto* state = ctx.make_state<HardmaxState>(HardmaxState{view, type, byte_width(type), {}});
  const float one = 1;
  kernels::cast(ElementType::kFloat, type, &one, state->one, 1);
  ctx.scratch_bytes = view.outer * view.inner * sizeof(int64_t);
  ctx.set_kernel(run_hardmax, state);
  return {};
}

// Runs along one axis; before version 13 along all axes from `axis` on.
Status softmax_axes(AxisContext& c) {
  const bool flattens = c.version() < 13;
  const int64_t axis = c.axis(c.rank(0), flattens ? 1 : -1);
  if (axis == c.in(0) || (flattens && c.in(0) > axis)) {
    return looks_along(fmt::format("it is taken over axis {}", c.in(0)));
  }
  return c.give(0, c.in(0));
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Hardmax, "") {
  op.since(1).in("input", "T").out("output", "T").attr("axis", 1).type("T", types::kFloats);
  op.since(11);
  op.since(13).attr("axis", -1).type("T", types::kFloatsBf16);
  op.infer(infer_softmax).prepare(prepare_hardmax).axes(softmax_axes, axes::shift_axis).work(work::reduction);
}

TREADLE_OP(LogSoftmax, "") {
  op.since(1).in("input", "T").out("output", "T").attr("axis", 1).type("T", types::kFloats);
  op.since(11);
  op.since(13).attr("axis", -1).type("T", types::kFloatsBf16);
  op.infer(infer_softmax)
      .prepare(prepare_softmax<kernels::SoftmaxKind::kLogSoftmax>)
      .axes(softmax_axes, axes::shift_axis)
      .work(work::functions_of_input);
}

TREADLE_OP(Softmax, "") {
  op.since(1).in("input", "T").out("output", "T").attr("axis", 1).type("T", types::kFloats);
  op.since(11);
  op.since(13).attr("axis", -1).type("T", types::kFloatsBf16);
  op.infer(infer_softmax)
      .prepare(prepare_softmax<kernels::SoftmaxKind::kSoftmax>)
      .axes(softmax_axes, axes::shift_axis)
      .work(work::functions_of_input);
}
