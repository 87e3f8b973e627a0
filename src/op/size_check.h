#pragma once
// What planning cannot ask where only the run knows sizes, and what the run asks instead: a CheckSizes whether the
// inference of a node takes the sizes of its operands, a CheckResult whether a result has the sizes that inference
// stated (ops/control/check_sizes.cc).

#include <span>
#include <vector>

#include "op/op_def.h"

namespace treadle {

// Whether the operator is CheckSizes or CheckResult: no node reads what such a node makes, and the node runs anyway.
bool is_size_check(const OpDef& op);

// ir::NodeInfo::parsed of a CheckSizes.
struct SizeQuestion {
  ir::NodeInfo node;              // the one that is asked; planning has put simpler nodes in its place
  std::vector<Type> types;        // of its inputs; unknown: left out
  std::vector<Tensor> constants;  // contents of its inputs; undefined: not known
  std::vector<size_t> asked;      // the inputs whose sizes only the run knows, which are the inputs of the CheckSizes

  // `sizes`: types of the inputs that `asked` counts. Errors: those of the node's inference.
  Status ask(std::span<const Type* const> sizes) const;
};

// Whether a lowering's result of shape `made` has the sizes that the inference of the lowered node stated. Sizes that
// are not known fit.
Status check_result(const Shape& made, const Shape& stated);

}  // namespace treadle
