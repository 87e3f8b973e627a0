// LinearRecurrence, made by opt/linear_recurrences.cc from loops: all states of h_t = a_t h_(t-1) + b_t.
#include "kernels/linear_recurrence.h"

#include <cstring>

#include "op/op_def.h"
#include "op/parallel.h"

namespace treadle {
namespace {

enum Input : size_t { kInitial, kA, kB };

Status infer_linear_recurrence(InferContext& ctx) {
  const Shape* state = ctx.shape(kInitial);
  if (!state) return {};
  Dim steps;
  for (const size_t i : {kA, kB}) {
    const Shape* shape = ctx.has_input(i) ? ctx.shape(i) : nullptr;
    if (shape && shape->size() == state->size() + 1) steps = (*shape)[0];
  }
  Shape rows{steps};
  for (const Dim& d : *state) rows.push_back(d);
  const ElementType type = ctx.element(kInitial);
  ctx.set_output(0, type, rows);
  ctx.set_output(1, type, *state);
  ctx.set_output(2, type, std::move(rows));
  return {};
}

struct RecurrenceState {
  kernels::LinearRecurrence recurrence;
  bool shares = false;  // shared among threads
  size_t row_bytes = 0;
};

// The state before each step: the initial one, then the rows of the steps before.
void write_before(const RecurrenceState& s, const void* initial, const void* rows, void* before) {
  if (s.recurrence.steps == 0) return;
  const auto* from = static_cast<const std::byte*>(rows);
  auto* to = static_cast<std::byte*>(before);
  const size_t rest = static_cast<size_t>(s.recurrence.steps - 1) * s.row_bytes;
  if (s.recurrence.reverse) {
    std::memcpy(to, from + s.row_bytes, rest);
    std::memcpy(to + rest, initial, s.row_bytes);
  } else {
    std::memcpy(to, initial, s.row_bytes);
    std::memcpy(to + s.row_bytes, from, rest);
  }
}

uint32_t run_linear_recurrence(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const RecurrenceState*>(state);
  const void* initial = slots[operands[kInitial]];
  void *rows = slots[operands[3]], *before = slots[operands[5]];
  const bool shares = s.shares && thread_limit() > 1;
  s.recurrence(slots[operands[kA]], slots[operands[kB]], initial, rows, slots[operands[4]],
               shares ? slots[operands[6]] : nullptr);
  if (before) write_before(s, initial, rows, before);
  return 0;
}

Status prepare_linear_recurrence(PrepareContext& ctx) {
  const Operand &initial = ctx.inputs[kInitial], &rows = ctx.outputs[0];
  auto* s = ctx.make_state<RecurrenceState>();
  kernels::LinearRecurrence& r = s->recurrence;
  r.type = initial.type;
  r.lanes = initial.element_count();
  r.steps = rows.dims[0];
  r.reverse = ctx.attributes().get_int("reverse") != 0;
  const auto stride = [&](size_t i) { return ctx.has_input(i) && ctx.inputs[i].rank() > initial.rank() ? r.lanes : 0; };
  r.a_stride = stride(kA);
  r.b_stride = stride(kB);
  s->row_bytes = initial.byte_size();
  ctx.cost_ns = r.estimated_ns();
  s->shares = ctx.threads > 1 && ctx.cost_ns >= 4 * kMinThreadNs;
  if (s->shares) ctx.scratch_bytes = r.scratch_bytes();
  ctx.set_kernel(run_linear_recurrence, s);
  return {};
}

}  // namespace
}  // namespace treadle

TREADLE_OP(LinearRecurrence, "treadle") {
  op.since(1)
      .in("initial", "T")
      .in("a", "T", Arity::kOptional)
      .in("b", "T", Arity::kOptional)
      .out("rows", "T")
      .out("last", "T")
      .out("before", "T", Arity::kOptional)
      .attr("reverse", 0)
      .type("T", tensors(ElementType::kFloat, ElementType::kDouble, ElementType::kInt32, ElementType::kUint32,
                         ElementType::kInt64, ElementType::kUint64));
  op.infer(infer_linear_recurrence).prepare(prepare_linear_recurrence).no_axes("it runs over time");
}
