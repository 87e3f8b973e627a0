#include "op/size_check.h"

#include "op/operands.h"

namespace treadle {

bool is_size_check(const OpDef& op) {
  return op.domain == "treadle" && (op.name == "CheckSizes" || op.name == "CheckResult");
}

Status SizeQuestion::ask(std::span<const Type* const> sizes) const {
  InlineVector<const Type*, 8> inputs(types.size());
  InlineVector<const Tensor*, 8> values(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i].is_known()) inputs[i] = &types[i];
    if (constants[i].defined()) values[i] = &constants[i];
  }
  for (size_t k = 0; k < asked.size(); ++k) inputs[asked[k]] = sizes[k];
  InlineVector<Type, 4> outputs(node.output_count);
  InferContext context{node, inputs, values, {}, outputs, {}, {}};
  return node.op->infer(context);
}

Status check_result(const Shape& made, const Shape& stated) {
  if (may_equal(made, stated)) return {};
  return error(Code::kInvalidArgument, "operands make a result of shape {}, expected {}", to_string(made),
               to_string(stated));
}

}  // namespace treadle
