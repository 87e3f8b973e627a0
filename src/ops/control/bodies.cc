#include "ops/control/bodies.h"

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

namespace {

TypeSet values_of(const ElementTypeSet& tensors, const ElementTypeSet& in_optional_sequences) {
  return tensors | sequences_of(tensors) | optionals_of(tensors) | optional_sequences_of(in_optional_sequences);
}

}  // namespace

void add_value_types(OpBuilder& op) {
  op.since(13).type("V", types::kAllTensors | sequences_of(types::kAllTensors));
  op.since(16).type("V", values_of(types::kAllTensorsIr4, types::kAllTensorsIr4));
  op.since(19).type("V", values_of(types::kAllTensorsIr9, types::kAllTensorsIr4));
  op.since(21).type("V", values_of(types::kAllTensorsIr10, types::kAllTensorsIr4));
  op.since(23).type("V", values_of(types::kAllTensorsIr11, types::kAllTensorsIr4));
  op.since(24).type("V", values_of(types::kAllTensorsIr12, types::kAllTensorsIr4));
  op.since(25).type("V", values_of(types::kAllTensorsIr13, types::kAllTensorsIr4));
}

}  // namespace treadle
