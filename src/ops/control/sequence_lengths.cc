// SequenceLengths (internal): checks the lengths that RNN, LSTM, GRU and Scan-8 take, for the nodes behind it. Inputs:
// lengths int32 or int64 [B], the longest length allowed (int64, one element). Output: the lengths as int64.
#include "op/op_def.h"

namespace treadle {

namespace {

Status infer_sequence_lengths(InferContext& ctx) {
  const Shape* shape = ctx.shape(0);
  if (shape && shape->size() != 1) {
    return error(Code::kInvalidArgument, "sequence_lens has shape {}, expected one length per batch entry",
                 to_string(*shape));
  }
  const Shape* longest = ctx.shape(1);
  if (longest && element_count(*longest).is_known() && !element_count(*longest).is_known(1)) {
    return error(Code::kInvalidArgument, "expected sequences with an axis of time, found none");
  }
  ctx.set_output(0, ElementType::kInt64, shape ? *shape : Shape{Dim()});
  return {};
}

template <class T>
uint32_t check_lengths(const void* state, void* const* slots, const uint32_t* operands) {
  const int64_t count = *static_cast<const int64_t*>(state);
  const T* lengths = static_cast<const T*>(slots[operands[0]]);
  const int64_t longest = *static_cast<const int64_t*>(slots[operands[1]]);
  int64_t* out = static_cast<int64_t*>(slots[operands[2]]);
  for (int64_t b = 0; b < count; ++b) {
    if (lengths[b] < 0 || lengths[b] > longest) return fail(KernelError::kSequenceLength, lengths[b], longest, b);
    out[b] = lengths[b];
  }
  return 0;
}

Status prepare_sequence_lengths(PrepareContext& ctx) {
  const int64_t* count = ctx.make_state<int64_t>(ctx.outputs[0].element_count());
  const bool wide = ctx.inputs[0].type == ElementType::kInt64;
  ctx.set_kernel(wide ? check_lengths<int64_t> : check_lengths<int32_t>, count);
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(SequenceLengths, "treadle") {
  op.since(1)
      .in("lengths", "T")
      .in("longest", "tensor(int64)")
      .out("checked", "tensor(int64)")
      .type("T", types::kIndices);
  op.infer(infer_sequence_lengths)
      .prepare(prepare_sequence_lengths)
      .can_fail()
      .no_axes("it looks for the longest of all lengths");
}
