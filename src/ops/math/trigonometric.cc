// Circular and hyperbolic functions and their inverses.

#include "op/elementwise_records.h"

TREADLE_OP(Acos, "") {
  op.since(7).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kAcos>(op);
}

TREADLE_OP(Acosh, "") {
  op.since(9).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kAcosh>(op);
}

TREADLE_OP(Asin, "") {
  op.since(7).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kAsin>(op);
}

TREADLE_OP(Asinh, "") {
  op.since(9).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kAsinh>(op);
}

TREADLE_OP(Atan, "") {
  op.since(7).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kAtan>(op);
}

TREADLE_OP(Atanh, "") {
  op.since(9).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kAtanh>(op);
}

TREADLE_OP(Cos, "") {
  op.since(7).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kCos>(op);
}

TREADLE_OP(Cosh, "") {
  op.since(9).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kCosh>(op);
}

TREADLE_OP(Sin, "") {
  op.since(7).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kSin>(op);
}

TREADLE_OP(Sinh, "") {
  op.since(9).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kSinh>(op);
}

TREADLE_OP(Tan, "") {
  op.since(7).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kTan>(op);
}
