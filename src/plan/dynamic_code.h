#pragma once
// The computations of nodes of dynamic shape, without sizes, for native code (plan/native.h). Operands are the node's
// inputs; their ranks are known.

#include <algorithm>

#include "op/op_def.h"
#include "plan/kernel_code.h"

namespace treadle::plan {

struct DynamicCode {
  // The size rule of the operator, which says what the node does:
  //   kBroadcast  `step`; its arguments are inputs of the node
  //   kReduce     `reduce` along the last axis, which stays with size 1 if `keep`
  //   kSlice      bounds are inputs 1 and 2; entry i of both belongs to axes[i] and steps[i]
  //   kConcat     along `axis`
  //   kReshape    to the sizes in input 1
  //   kSqueeze    removes the axes `axes`
  //   kUnsqueeze  adds axes of size 1, the result's `axes`
  //   kSplit      into equal parts of `axis`
  //   kRange      of integers
  SizeRule rule = SizeRule::kNone;
  ElementwiseCode::Step step;
  kernels::ReduceOp reduce{};
  bool keep = false;
  bool appends = false;  // for kConcat: extends a state of a loop in its own memory, row-major
  int64_t axis = 0;
  Dims axes, steps;
  bool has_axis(size_t d) const { return std::ranges::find(axes, static_cast<int64_t>(d)) != axes.end(); }

  std::vector<Dims> planned;  // by input: the sizes of a value in planned memory; empty for other values
};

// The code of a kGuarded instruction. Nullopt if the node is not one of these, computes on strings or on elements that
// native code does not hold, or has an operand of unknown rank.
std::optional<DynamicCode> dynamic_code(const Program& program, uint32_t pc);

}  // namespace treadle::plan
