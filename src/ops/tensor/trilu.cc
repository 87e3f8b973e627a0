// Operators that keep the sizes of their input: Trilu and ReverseSequence.

#include <algorithm>
#include <cstring>

#include "op/axis_rules.h"
#include "op/moves.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "op/refused_element.h"
#include "ops/costs.h"

namespace treadle {
namespace {

// --- Trilu

Status infer_trilu(InferContext& c) {
  const Shape* shape = c.shape(0);
  if (shape && shape->size() < 2) {
    return error(Code::kInvalidArgument, "expected an input of rank 2 or more, found shape {}", to_string(*shape));
  }
  c.set_output(0, c.input(0));
  return {};
}

struct TriluState {
  int64_t matrices = 1, rows = 0, columns = 0, k = 0;
  size_t width = 0;
  bool upper = true;
  uint32_t output = 0;

  // Columns [0, split) of row i are on one side of the diagonal, the rest on the other.
  int64_t split(int64_t i) const { return std::clamp<int64_t>(i + k + (upper ? 0 : 1), 0, columns); }
};

uint32_t run_trilu(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const TriluState*>(state);
  const auto* in = static_cast<const char*>(slots[operands[0]]);
  auto* out = static_cast<char*>(slots[operands[s.output]]);
  const size_t row_bytes = static_cast<size_t>(s.columns) * s.width;
  StopPoll stop;
  for (int64_t m = 0; m < s.matrices; ++m) {
    for (int64_t i = 0; i < s.rows; ++i, in += row_bytes, out += row_bytes) {
      if (stop.after(kByteNs * static_cast<double>(row_bytes))) return fail(KernelError::kStopped);
      const size_t left = static_cast<size_t>(s.split(i)) * s.width, right = row_bytes - left;
      if (s.upper) {
        fill_in_pieces(out, 0, left);
        copy_in_pieces(out + left, in + left, right);
      } else {
        copy_in_pieces(out, in, left);
        fill_in_pieces(out + left, 0, right);
      }
    }
  }
  return 0;
}

void say_triangle(PrepareContext& c, const TriluState& s) {
  Moves* moves = moves_of(c);
  for (size_t e = 0; moves && e < moves->from[0].size(); ++e) {
    const auto element = static_cast<int64_t>(e);
    const bool is_right = element % s.columns >= s.split(element / s.columns % s.rows);
    if (is_right == s.upper) moves->from[0][e] = element;
  }
}

Status prepare_trilu(PrepareContext& c) {
  const Operand& in = c.inputs[0];
  auto* s = c.make_state<TriluState>();
  const size_t rank = in.dims.size();
  s->rows = in.dims[rank - 2];
  s->columns = in.dims[rank - 1];
  s->matrices = s->rows * s->columns > 0 ? element_count_unchecked(in.dims.span().first(rank - 2)) : 0;
  s->width = byte_width(in.type);
  s->upper = c.attributes().get_int("upper", 1) != 0;
  s->output = static_cast<uint32_t>(c.inputs.size());
  if (c.has_input(1)) {
    const Ints k = c.int64s(1);
    if (k.size() != 1) return error(Code::kInvalidArgument, "k has {} elements, expected 1", k.size());
    s->k = std::clamp(k[0], -s->rows - 1, s->columns + 1);
  }
  say_triangle(c, *s);
  c.set_kernel(run_trilu, s);
  return {};
}

// --- ReverseSequence

Status check_sequence_axes(const ir::Attributes& attributes) {
  const int64_t batch = attributes.get_int("batch_axis", 1), time = attributes.get_int("time_axis", 0);
  if ((batch == 0 && time == 1) || (batch == 1 && time == 0)) return {};
  return error(Code::kInvalidModel, "batch_axis and time_axis are {} and {}, expected 0 and 1 in either order", batch,
               time);
}

Status infer_reverse_sequence(InferContext& c) {
  TREADLE_TRY(check_sequence_axes(c.attributes()));
  const Shape *shape = c.shape(0), *lengths = c.shape(1);
  if (shape && shape->size() < 2) {
    return error(Code::kInvalidArgument, "expected an input of rank 2 or more, found shape {}", to_string(*shape));
  }
  if (shape && lengths) {
    const Dim& batch = (*shape)[static_cast<size_t>(c.attributes().get_int("batch_axis", 1))];
    if (lengths->size() != 1 ||
        (batch.is_known() && (*lengths)[0].is_known() && batch.value() != (*lengths)[0].value())) {
      return error(Code::kInvalidArgument, "sequence_lens has shape {}, expected [{}]", to_string(*lengths),
                   batch.to_string());
    }
  }
  c.set_output(0, c.input(0));
  return {};
}

struct ReverseState {
  int64_t batches = 0, times = 0;
  size_t batch_stride = 0, time_stride = 0;  // in bytes
  size_t bytes = 0;                          // of one step of one sequence
};

// Which step of a sequence of this length comes at step t.
int64_t reversed(int64_t t, int64_t length) {
  return t < length ? length - 1 - t : t;
}

uint32_t run_reverse_sequence(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const ReverseState*>(state);
  const auto* in = static_cast<const char*>(slots[operands[0]]);
  const auto* lengths = static_cast<const int64_t*>(slots[operands[1]]);
  auto* out = static_cast<char*>(slots[operands[2]]);
  StopPoll stop;
  for (int64_t b = 0; b < s.batches; ++b) {
    const int64_t length = lengths[b];
    if (length < 0 || length > s.times) return refuse_element({"sequence_lens", b}, length, 0, s.times);
    const size_t base = static_cast<size_t>(b) * s.batch_stride;
    const auto move_steps = [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        std::memcpy(out + base + static_cast<size_t>(t) * s.time_stride,
                    in + base + static_cast<size_t>(reversed(t, length)) * s.time_stride, s.bytes);
      }
    };
    if (!in_pieces(s.times, costs::kReversedStepNs + kByteNs * static_cast<double>(s.bytes), stop, move_steps)) {
      return fail(KernelError::kStopped);
    }
  }
  return 0;
}

void say_reversed(PrepareContext& c, const Dims& dims, size_t batch_axis) {
  const auto* lengths = static_cast<const int64_t*>(c.inputs[1].constant);
  Moves* moves = lengths ? moves_of(c) : nullptr;
  if (!moves) return;
  const int64_t step = element_count_unchecked(dims.span().subspan(2));
  for (size_t e = 0; e < moves->from[0].size(); ++e) {
    const auto element = static_cast<int64_t>(e);
    const int64_t at[] = {element / step / dims[1], element / step % dims[1]};
    const int64_t time = at[1 - batch_axis], length = lengths[at[batch_axis]];
    if (length < 0 || length > dims[1 - batch_axis]) return withdraw_moves(c);
    const int64_t times = batch_axis == 0 ? step : step * dims[1];
    moves->from[0][e] = element + (reversed(time, length) - time) * times;
  }
}

Status prepare_reverse_sequence(PrepareContext& c) {
  const Operand& in = c.inputs[0];
  const auto batch = static_cast<size_t>(c.attributes().get_int("batch_axis", 1));
  const size_t width = byte_width(in.type);
  auto* s = c.make_state<ReverseState>();
  s->batches = in.dims[batch];
  s->times = in.dims[1 - batch];
  s->batch_stride = static_cast<size_t>(in.strides[batch]) * width;
  s->time_stride = static_cast<size_t>(in.strides[1 - batch]) * width;
  s->bytes = static_cast<size_t>(element_count_unchecked(in.dims.span().subspan(2))) * width;
  say_reversed(c, in.dims, batch);
  c.set_kernel(run_reverse_sequence, s);
  return {};
}

Status triangle_axes(AxisContext& c) {
  TREADLE_TRY(axes::only_first(c));
  if (c.in(0) >= c.rank(0) - 2) return looks_along("it looks at positions along it");
  return c.give(0, c.in(0));
}

Status reversed_axes(AxisContext& c) {
  const int64_t batch = c.axis(c.rank(0), 1, "batch_axis"), time = c.axis(c.rank(0), 0, "time_axis");
  if (c.in(0) == time) return looks_along("it reverses it");
  if (!c.runs_along(0) || c.runs_along(1) != (c.in(0) == batch))
    return looks_along("not all of its inputs run along it");
  return c.give(0, c.in(0));
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Trilu, "") {
  op.since(14)
      .in("input", "T")
      .in("k", "tensor(int64)", Arity::kOptional)
      .out("output", "T")
      .attr("upper", 1)
      .type("T", types::kAllTensorsIr4);
  op.infer(infer_trilu)
      .prepare(prepare_trilu)
      .compute(compute_by_position)
      .moves_elements()
      .shape_inputs({1})
      .axes(triangle_axes, axes::unchanged);
}

TREADLE_OP(ReverseSequence, "") {
  op.since(10)
      .in("input", "T")
      .in("sequence_lens", "tensor(int64)")
      .out("Y", "T")
      .attr("batch_axis", 1)
      .attr("time_axis", 0)
      .type("T", types::kAllTensors);
  op.since(28).type("T", types::kAllTensorsIr4);
  op.infer(infer_reverse_sequence)
      .prepare(prepare_reverse_sequence)
      .compute(compute_by_position)
      .moves_elements()
      .can_fail()
      .axes(reversed_axes);
}
