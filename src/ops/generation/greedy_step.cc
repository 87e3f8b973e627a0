// GreedyStep (internal): appends a token to each row. A row that has ended gets padding tokens, from its ending token
// on.
#include <algorithm>

#include "op/op_def.h"
#include "op/operands.h"

namespace treadle {

namespace {

enum Input : size_t { kNext, kSequences, kLength, kEnded, kInputs };
enum Output : size_t { kTokens = kInputs, kAppended, kEndedAfter, kGoesOn };

struct GreedyState {
  int64_t rows = 0, longest = 0;
  int32_t end = 0, pad = 0;
};

uint32_t run_greedy_step(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const GreedyState*>(state);
  const auto* next = static_cast<const int64_t*>(slots[operands[kNext]]);
  const auto* before = static_cast<const int32_t*>(slots[operands[kSequences]]);
  const int64_t length = *static_cast<const int64_t*>(slots[operands[kLength]]);
  const auto* ended = static_cast<const bool*>(slots[operands[kEnded]]);
  auto* tokens = static_cast<int32_t*>(slots[operands[kTokens]]);
  auto* appended = static_cast<int32_t*>(slots[operands[kAppended]]);
  auto* ended_after = static_cast<bool*>(slots[operands[kEndedAfter]]);
  if (length >= s.longest) return fail(KernelError::kIndexOutOfRange, length, s.longest);
  bool all = true;
  std::copy_n(before, s.rows * s.longest, appended);
  for (int64_t r = 0; r < s.rows; ++r) {
    const bool ends = ended[r] || next[r] == s.end;
    ended_after[r] = ends;
    tokens[r] = appended[r * s.longest + length] = ends ? s.pad : static_cast<int32_t>(next[r]);
    all = all && ends;
  }
  *static_cast<bool*>(slots[operands[kGoesOn]]) = !all;
  return 0;
}

Status prepare_greedy_step(PrepareContext& ctx) {
  const Dims& sequences = ctx.inputs[kSequences].dims;
  ctx.set_kernel(run_greedy_step,
                 ctx.make_state<GreedyState>(GreedyState{
                     sequences[0], sequences[1], static_cast<int32_t>(ctx.attributes().get_int("eos_token_id")),
                     static_cast<int32_t>(ctx.attributes().get_int("pad_token_id"))}));
  return {};
}

Status infer_greedy_step(InferContext& ctx) {
  const Shape *sequences = ctx.shape(kSequences), *next = ctx.shape(kNext);
  if (next && sequences && (next->size() != 1 || differ((*next)[0], (*sequences)[0]))) {
    return error(Code::kInvalidArgument, "the next tokens have shape {}, expected one for each of {} sequences",
                 to_string(*next), (*sequences)[0].to_string());
  }
  ctx.set_output(0, ElementType::kInt32, {sequences ? (*sequences)[0] : Dim(), 1});
  ctx.set_output(1, ctx.input(kSequences));
  ctx.set_output(2, ctx.input(kEnded));
  ctx.set_output(3, ElementType::kBool, Shape());
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(GreedyStep, "treadle") {
  op.since(1)
      .in("next", "tensor(int64)")
      .in("sequences", "tensor(int32)")
      .in("length", "tensor(int64)")
      .in("ended", "tensor(bool)")
      .out("tokens", "tensor(int32)")
      .out("appended", "tensor(int32)")
      .out("ended_after", "tensor(bool)")
      .out("goes_on", "tensor(bool)")
      .required("eos_token_id", ir::AttributeKind::kInt)
      .required("pad_token_id", ir::AttributeKind::kInt);
  op.infer(infer_greedy_step).prepare(prepare_greedy_step).can_fail().no_axes("it goes on while any row does");
}
