#include "ops/control/bodies.h"

#include "op/op_def.h"

namespace treadle {

Status check_body(const ir::NodeInfo& node, const ir::Region& body, size_t inputs, size_t outputs) {
  if (body.inputs.size() != inputs) {
    return error(Code::kInvalidModel, "{}: '{}' has {} inputs, expected {}", node.op->name, body.attribute,
                 body.inputs.size(), inputs);
  }
  if (body.outputs.size() != outputs) {
    return error(Code::kInvalidModel, "{}: '{}' has {} outputs, expected {}", node.op->name, body.attribute,
                 body.outputs.size(), outputs);
  }
  return {};
}

Status check_one_element(const InferContext& ctx, size_t i, std::string_view what) {
  const Shape* shape = ctx.shape(i);
  if (!shape) return {};
  const Dim count = element_count(*shape);
  if (!count.is_known() || count.value() == 1) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected a scalar or one element", what, to_string(*shape));
}

}  // namespace treadle
