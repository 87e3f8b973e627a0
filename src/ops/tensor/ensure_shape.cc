// A tensor as it is, of sizes that the node says: rewriting knows them where inference cannot
// (opt/sequence_elements.h).

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"

namespace treadle {
namespace {

Status infer_sized(InferContext& c) {
  Shape shape;
  for (const int64_t d : c.attributes().get_ints("dims")) {
    shape.push_back(d < 0 ? Dim::symbol(c.attributes().get_string("symbol")) : Dim(d));
  }
  c.set_output(0, c.element(0), std::move(shape));
  return {};
}

Status compute_sized(ComputeContext& c) {
  const auto expected = c.attributes().get_ints("dims");
  const Dims& found = c.tensor(0).dims();
  bool fits = expected.size() == found.size();
  for (size_t i = 0; fits && i < found.size(); ++i) fits = expected[i] < 0 || expected[i] == found[i];
  if (!fits) return error(Code::kInternal, "a tensor of sizes {} is not what was planned for", to_string(found));
  c.outputs[0] = c.inputs[0];
  return {};
}

}  // namespace
}  // namespace treadle

TREADLE_OP(EnsureShape, "treadle") {
  op.since(1)
      .in("input", "T")
      .out("output", "T")
      .required("dims", ir::AttributeKind::kInts)  // -1: the size that `symbol` names
      .required("symbol", ir::AttributeKind::kString)
      .type("T", types::kAllTensors);
  op.infer(infer_sized).compute(compute_sized).axes(axes::element_by_element);
}
