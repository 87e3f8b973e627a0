// CheckSizes (internal): asks the inference of another node whether it takes the sizes at hand. It stands in front of
// what a lowering has written in the place of that node, where no plan knows the sizes. Its inputs are those of the
// node, its output is the one of them that attribute `from` counts. ir::NodeInfo::parsed holds the other node.
#include "op/op_def.h"

namespace treadle {

namespace {

size_t passed_on(const ir::Attributes& attributes) {
  return static_cast<size_t>(attributes.get_int("from"));
}

Status infer_check(InferContext& ctx) {
  const auto& whole = ctx.node.parsed_as<ir::NodeInfo>();
  std::vector<Type> unused(whole.output_count);
  InferContext asked{whole, ctx.inputs, ctx.values, ctx.symbols, unused, {}, {}};
  TREADLE_TRY(whole.op->infer(asked));
  ctx.set_output(0, ctx.input(passed_on(ctx.attributes())));
  return {};
}

Status compute_check(ComputeContext& ctx) {
  ctx.outputs[0] = ctx.inputs[passed_on(ctx.attributes())];
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(CheckSizes, "treadle") {
  op.since(1)
      .in("of_the_node", "V", Arity::kVariadicMixed)
      .out("passed_on", "P")
      .required("from", ir::AttributeKind::kInt)
      .type("V", types::kAllTensorsIr14)
      .type("P", types::kAllTensorsIr14);
  op.infer(infer_check)
      .compute(compute_check)
      .can_fail()
      .no_axes("the node behind it is asked about all sizes at once");
}
