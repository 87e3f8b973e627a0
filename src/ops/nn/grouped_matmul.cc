// GroupedMatMul: multiplies each row of the input by the matrices of the groups that are chosen for the row.

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/fused/calls.h"

namespace treadle::nn {

namespace {

using ir::Value;

enum Input : size_t { kRows, kWeights, kGroups, kBias };

Status check_rank(const Shape* shape, size_t rank, const char* name, const char* expected) {
  if (!shape || shape->size() == rank) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected {}", name, to_string(*shape), expected);
}

Status infer_grouped(InferContext& ctx) {
  const Shape *x = ctx.shape(kRows), *w = ctx.shape(kWeights), *groups = ctx.shape(kGroups), *bias = ctx.shape(kBias);
  TREADLE_TRY(check_rank(x, 2, "input", "[M,K]"));
  TREADLE_TRY(check_rank(w, 3, "weights", "[G,K,N]"));
  TREADLE_TRY(check_rank(groups, 2, "group_indices", "[M,S]"));
  TREADLE_TRY(check_rank(bias, 2, "bias", "[G,N]"));
  if (x && w && differ((*x)[1], (*w)[1])) {
    return error(Code::kInvalidArgument,
                 "weights has shape {}, expected [G,{},N]: matrices with a row for each column of input {}",
                 to_string(*w), (*x)[1].to_string(), to_string(*x));
  }
  if (x && groups && differ((*x)[0], (*groups)[0])) {
    return error(Code::kInvalidArgument, "group_indices has shape {}, expected [{},S]: a row for each row of input {}",
                 to_string(*groups), (*x)[0].to_string(), to_string(*x));
  }
  if (w && bias && (differ((*w)[0], (*bias)[0]) || differ((*w)[2], (*bias)[1]))) {
    return error(Code::kInvalidArgument, "bias has shape {}, expected [{},{}]: a row for each matrix of weights {}",
                 to_string(*bias), (*w)[0].to_string(), (*w)[2].to_string(), to_string(*w));
  }
  const Dim rows = x ? (*x)[0] : groups ? (*groups)[0] : Dim();
  ctx.set_output(0, ctx.element(kRows), {rows, groups ? (*groups)[1] : Dim(), w ? (*w)[2] : Dim()});
  return {};
}

Status lower_grouped(LowerContext& ctx) {
  Value* rows = fused::unsqueeze(ctx, ctx.input(kRows), {1, 2});                    // [M,1,1,K]
  Value* matrices = ctx.call("Gather", {ctx.input(kWeights), ctx.input(kGroups)});  // [M,S,K,N]
  Value* y = ctx.call("Squeeze", {ctx.call("MatMul", {rows, matrices}), ctx.constant_int64s({2})});
  if (Value* bias = fused::optional_input(ctx, kBias)) {
    y = ctx.call("Add", {y, ctx.call("Gather", {bias, ctx.input(kGroups)})});
  }
  ctx.set_output(0, y);
  return {};
}

}  // namespace

}  // namespace treadle::nn

TREADLE_OP(GroupedMatMul, "") {
  op.since(29)
      .in("input", "T")
      .in("weights", "T")
      .in("group_indices", "Tind")
      .in("bias", "T", Arity::kOptional)
      .out("output", "T")
      .type("T", types::kFloatsBf16)
      .type("Tind", types::kIndices);
  op.infer(nn::infer_grouped).lower(nn::lower_grouped).can_fail().axes(axes::entries_of<0b0101>);
}
