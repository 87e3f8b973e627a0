// PickedConcat (internal): Concat of Gather(data, rows) along `pick_axis` and of more along another axis. In a loop
// that appends to such a state the engine puts rows in their places where they lie (run/growing.h); elsewhere this
// kernel copies each row once.
#include <vector>

#include "kernels/move.h"
#include "op/dynamic_kernel.h"
#include "op/op_def.h"
#include "op/operands.h"

namespace treadle {

namespace {

enum Input : size_t { kData, kRows, kMore };

struct PickedAxes {
  size_t joined = 0, picked = 0;

  explicit PickedAxes(const ir::Attributes& given)
      : joined(static_cast<size_t>(given.get_int("axis"))), picked(static_cast<size_t>(given.get_int("pick_axis"))) {}
};

Status infer_picked(InferContext& ctx) {
  const Shape *data = ctx.shape(kData), *rows = ctx.shape(kRows);
  const PickedAxes axes(ctx.attributes());
  if (!data || !rows) return ctx.set_output(0, ctx.element(kData)), Status();
  Shape out = *data;
  if (axes.joined >= out.size() || axes.picked >= out.size() || rows->size() != 1) {
    return error(Code::kInvalidArgument, "data and rows have shapes {} and {}, expected axes {} and {} and a list",
                 to_string(*data), to_string(*rows), axes.joined, axes.picked);
  }
  out[axes.picked] = (*rows)[0];
  for (size_t i = kMore; i < ctx.inputs.size(); ++i) {
    const Shape* more = ctx.shape(i);
    if (!more) {
      out[axes.joined] = Dim::unknown();
      continue;
    }
    if (more->size() != out.size()) {
      return error(Code::kInvalidArgument, "inputs have ranks {} and {}, expected equal ones", out.size(),
                   more->size());
    }
    for (size_t d = 0; d < out.size(); ++d) {
      if (d == axes.joined) {
        out[d] = out[d] + (*more)[d];
      } else if (differ(out[d], (*more)[d])) {
        return error(Code::kInvalidArgument, "inputs have sizes {} and {} along axis {}, expected equal ones",
                     out[d].value(), (*more)[d].value(), d);
      } else if (out[d].is_unknown()) {
        out[d] = (*more)[d];
      }
    }
  }
  ctx.set_output(0, ctx.element(kData), std::move(out));
  return {};
}

struct AddedPart {
  kernels::CopyPlan copy;
  int64_t offset = 0;  // in bytes
};

struct PickedState {
  kernels::CopyPlan row;
  bool empty = false, wide = false;
  int64_t rows = 0, from_rows = 0, from_step = 0, to_step = 0;  // steps in bytes
  std::vector<AddedPart> parts;
};

uint32_t run_picked(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const PickedState*>(state);
  auto* out = static_cast<std::byte*>(slots[operands[kMore + s.parts.size()]]);
  const auto* data = static_cast<const std::byte*>(slots[operands[kData]]);
  for (int64_t r = 0; r < s.rows; ++r) {
    const int64_t index = index_at(slots[operands[kRows]], s.wide, r), from = index < 0 ? index + s.from_rows : index;
    if (from < 0 || from >= s.from_rows) return fail(KernelError::kIndexOutOfRange, index, s.from_rows);
    if (!s.empty) s.row(data + from * s.from_step, out + r * s.to_step);
  }
  for (size_t i = 0; i < s.parts.size(); ++i) {
    if (s.parts[i].copy.run) s.parts[i].copy(slots[operands[kMore + i]], out + s.parts[i].offset);
  }
  return 0;
}

Status prepare_picked(PrepareContext& ctx) {
  const PickedAxes axes(ctx.attributes());
  const Operand &data = ctx.inputs[kData], &out = ctx.outputs[0];
  const size_t width = byte_width(out.type);
  const auto step = [&](const Operand& of, size_t axis) { return of.strides[axis] * static_cast<int64_t>(width); };
  auto* s = ctx.make_state<PickedState>();
  s->wide = ctx.inputs[kRows].type == ElementType::kInt64;
  s->rows = ctx.inputs[kRows].element_count();
  s->from_rows = data.dims[axes.picked];
  s->from_step = step(data, axes.picked);
  s->to_step = step(out, axes.picked);
  Dims row = data.dims;
  row[axes.picked] = 1;
  s->empty = element_count_unchecked(row) == 0;
  if (!s->empty) TREADLE_TRY(kernels::prepare_copy(&s->row, width, row, data.strides, out.strides));
  int64_t at = data.dims[axes.joined];
  for (size_t i = kMore; i < ctx.inputs.size(); ++i) {
    const Operand& more = ctx.inputs[i];
    AddedPart& part = s->parts.emplace_back();
    part.offset = at * step(out, axes.joined);
    at += more.dims[axes.joined];
    if (more.element_count() == 0) continue;
    TREADLE_TRY(kernels::prepare_copy(&part.copy, width, more.dims, more.strides, out.strides));
  }
  ctx.set_kernel(run_picked, s);
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(PickedConcat, "treadle") {
  op.since(1)
      .in("data", "T")
      .in("rows", "I")
      .in("more", "T", Arity::kVariadic)
      .out("joined", "T")
      .required("axis", ir::AttributeKind::kInt)
      .required("pick_axis", ir::AttributeKind::kInt)
      .type("T", types::kAllTensorsIr4)
      .type("I", types::kIndices);
  op.appends();
  op.infer(infer_picked).prepare(prepare_picked).can_fail().no_axes("a loop's end makes it, and nothing moves it");
  op.def.strided_inputs = ~uint64_t{1 << kRows};
}
