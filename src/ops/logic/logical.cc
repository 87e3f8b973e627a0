// Logic on bools.

#include "op/elementwise.h"
#include "op/op_def.h"

TREADLE_OP(And, "") {
  op.since(1)
      .in("A", "T")
      .in("B", "T")
      .out("C", "T1")
      .optional("axis", ir::AttributeKind::kInt)
      .attr("broadcast", 0)
      .type("T", types::kBools)
      .type("T1", types::kBools);
  op.since(7).drop_attr("axis").drop_attr("broadcast");
  op.infer(infer_comparison)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kAnd>)
      .strided_inputs({0, 1})
      .elementwise();
}

TREADLE_OP(Not, "") {
  op.since(1).in("X", "T").out("Y", "T").type("T", types::kBools);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kNot>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Or, "") {
  op.since(1)
      .in("A", "T")
      .in("B", "T")
      .out("C", "T1")
      .optional("axis", ir::AttributeKind::kInt)
      .attr("broadcast", 0)
      .type("T", types::kBools)
      .type("T1", types::kBools);
  op.since(7).drop_attr("axis").drop_attr("broadcast");
  op.infer(infer_comparison)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kOr>)
      .strided_inputs({0, 1})
      .elementwise();
}

TREADLE_OP(Xor, "") {
  op.since(1)
      .in("A", "T")
      .in("B", "T")
      .out("C", "T1")
      .optional("axis", ir::AttributeKind::kInt)
      .attr("broadcast", 0)
      .type("T", types::kBools)
      .type("T1", types::kBools);
  op.since(7).drop_attr("axis").drop_attr("broadcast");
  op.infer(infer_comparison)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kXor>)
      .strided_inputs({0, 1})
      .elementwise();
}
