#pragma once
// Shared parts of the records of elementwise operators: their early versions, and their functions.

#include "op/elementwise.h"
#include "op/op_def.h"

namespace treadle {

// Versions 1 and 6 of Y = f(X). Version 1 has an attribute `consumed_inputs`, which no runtime reads. Returns version
// 6.
inline VersionBuilder unary_from_1_to_6(OpBuilder& op, const char* x = "X", const char* y = "Y") {
  op.since(1).in(x, "T").out(y, "T").optional("consumed_inputs", ir::AttributeKind::kInts).type("T", types::kFloats);
  return op.since(6).drop_attr("consumed_inputs");
}

// Versions 1 and 7 of a comparison or a logical operation C = f(A, B) of elements of `types`. Version 1 broadcasts on
// request only. Returns version 7.
inline VersionBuilder predicate_from_1_to_7(OpBuilder& op, TypeSet types) {
  op.since(1)
      .in("A", "T")
      .in("B", "T")
      .out("C", "T1")
      .optional("axis", ir::AttributeKind::kInt)
      .attr("broadcast", 0)
      .type("T", types)
      .type("T1", types::kBools);
  return op.since(7).drop_attr("axis").drop_attr("broadcast");
}

// The functions of an operation on one operand with any strides.
inline OpBuilder& unary(OpBuilder& op, PrepareFn prepare, InferFn infer = infer_like_input) {
  return op.infer(infer).prepare(prepare).strided_inputs({0}).elementwise();
}
template <kernels::ElementwiseOp kOp>
OpBuilder& unary(OpBuilder& op, InferFn infer = infer_like_input) {
  return unary(op, prepare_elementwise<kOp>, infer);
}

// The functions of an operation on two operands with any strides that are broadcast. Max, Min and Sum take any number
// of operands; with two, `prepare` makes an operation on two.
inline OpBuilder& binary(OpBuilder& op, PrepareFn prepare, InferFn infer) {
  return op.infer(infer).prepare(prepare).strided_inputs({0, 1}).elementwise();
}
template <kernels::ElementwiseOp kOp>
OpBuilder& binary(OpBuilder& op, InferFn infer) {
  return binary(op, prepare_elementwise<kOp>, infer);
}

}  // namespace treadle
