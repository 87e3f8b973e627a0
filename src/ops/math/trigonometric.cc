// Circular and hyperbolic functions and their inverses.

#include "op/elementwise.h"
#include "op/op_def.h"

TREADLE_OP(Acos, "") {
  op.since(7).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kAcos>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Acosh, "") {
  op.since(9).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kAcosh>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Asin, "") {
  op.since(7).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kAsin>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Asinh, "") {
  op.since(9).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kAsinh>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Atan, "") {
  op.since(7).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kAtan>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Atanh, "") {
  op.since(9).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kAtanh>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Cos, "") {
  op.since(7).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kCos>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Cosh, "") {
  op.since(9).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kCosh>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Sin, "") {
  op.since(7).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kSin>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Sinh, "") {
  op.since(9).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kSinh>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Tan, "") {
  op.since(7).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kTan>)
      .strided_inputs({0})
      .elementwise();
}
