#pragma once
// Checks at run time of sizes that planning does not know: a CheckSizes asks the inference of a node whether it accepts
// the sizes of its operands, a CheckResult compares a result with the sizes that inference stated
// (ops/control/check_sizes.cc).

#include <span>
#include <vector>

#include "op/op_def.h"

namespace treadle {

// Whether the operator is CheckSizes or CheckResult. Such a node runs although no node reads its result.
bool is_size_check(const OpDef& op);

// ir::NodeInfo::parsed of a CheckSizes.
struct SizeQuestion {
  ir::NodeInfo node;              // the node whose inference is asked; planning has replaced it by simpler nodes
  std::vector<Type> types;        // types of its inputs; unknown: left out
  std::vector<Tensor> constants;  // contents of its inputs; undefined: unknown
  std::vector<size_t> asked;      // numbers of its inputs with run-time sizes; these are the inputs of the CheckSizes

  // `sizes`: types of the inputs in `asked`. Errors: those of the node's inference.
  Status ask(std::span<const Type* const> sizes) const;
};

// Whether a lowering's result of shape `made` has the sizes that the lowered node's inference stated. Unknown sizes
// match.
Status check_result(const Shape& made, const Shape& stated);

}  // namespace treadle
