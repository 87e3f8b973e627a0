// Gradient stands in graphs that are differentiated before they run.

#include "op/op_def.h"

TREADLE_OP(Gradient, "ai.onnx.preview.training") {
  op.since(1)
      .in("Inputs", "T1", Arity::kVariadicMixed)
      .out("Outputs", "T2", Arity::kVariadicMixed)
      .required("xs", ir::AttributeKind::kStrings)
      .required("y", ir::AttributeKind::kString)
      .optional("zs", ir::AttributeKind::kStrings)
      .type("T1", types::kAllTensors)
      .type("T2", types::kFloats);
  op.not_run("differentiate graphs");
}
