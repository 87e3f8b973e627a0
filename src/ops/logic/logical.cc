// Logic on bools.

#include "op/elementwise_records.h"

TREADLE_OP(And, "") {
  predicate_from_1_to_7(op, types::kBools);
  binary<kernels::ElementwiseOp::kAnd>(op, infer_comparison);
}

TREADLE_OP(Not, "") {
  op.since(1).in("X", "T").out("Y", "T").type("T", types::kBools);
  unary<kernels::ElementwiseOp::kNot>(op);
}

TREADLE_OP(Or, "") {
  predicate_from_1_to_7(op, types::kBools);
  binary<kernels::ElementwiseOp::kOr>(op, infer_comparison);
}

TREADLE_OP(Xor, "") {
  predicate_from_1_to_7(op, types::kBools);
  binary<kernels::ElementwiseOp::kXor>(op, infer_comparison);
}
