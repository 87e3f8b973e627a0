// Trap (internal): replaces a node that cannot run with the sizes of a plan. It raises the error only if the run
// reaches it: it may be in a loop without iterations, in a branch that is not taken, or behind another node that fails.
#include "op/op_def.h"

namespace treadle {

namespace {

Status infer_failure(InferContext&) {
  return {};
}

Status fail_as_planned(ComputeContext& ctx) {
  return error(static_cast<Code>(ctx.attributes().get_int("code")), "{}", ctx.attributes().get_string("message"));
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Trap, "treadle") {
  op.since(1)
      .out("nothing", "V", Arity::kVariadicMixed, 0)
      .required("code", ir::AttributeKind::kInt)
      .required("message", ir::AttributeKind::kString)
      .type("V", types::kAllTensors);
  op.infer(infer_failure).compute(fail_as_planned).can_fail().no_axes("it has no operands");
}
