#include "op/op_def.h"
#include "op/operands.h"

namespace treadle {
namespace {

Status infer_optional(InferContext& c) {
  if (c.has_input(0)) {
    c.set_output(0, Type::optional(c.input(0)));
  } else if (const ir::Attribute* type = c.attributes().find("type")) {
    c.set_output(0, Type::optional(type->as_type()));
  } else {
    return error(Code::kInvalidModel, "expected an input or the attribute type, found neither");
  }
  return {};
}

Status compute_optional(ComputeContext& c) {
  if (c.has_input(0)) {
    Type type = c.inputs[0].is_tensor() ? Type::tensor(c.tensor(0).type()) : c.inputs[0].type();
    c.outputs[0] = AnyValue(Optional{std::move(type), std::make_shared<const AnyValue>(c.inputs[0])});
  } else if (const ir::Attribute* type = c.attributes().find("type")) {
    c.outputs[0] = AnyValue(Optional{type->as_type(), nullptr});
  } else {
    return error(Code::kInvalidModel, "expected an input or the attribute type, found neither");
  }
  return {};
}

Status infer_has_element(InferContext& c) {
  c.set_output(0, ElementType::kBool, {});
  return {};
}

// A tensor or sequence in place of an optional counts as an optional with contents.
Status compute_has_element(ComputeContext& c) {
  const bool is_optional = c.has_input(0) && c.inputs[0].kind() == AnyValue::Kind::kOptional;
  const bool has = is_optional ? c.inputs[0].optional().value != nullptr : c.has_input(0);
  c.outputs[0] = AnyValue(Tensor::scalar<bool>(ElementType::kBool, has));
  return {};
}

Status infer_get_element(InferContext& c) {
  if (!c.has_input(0)) return {};
  c.set_output(0, c.input(0).kind == Type::Kind::kOptional ? *c.input(0).child : c.input(0));
  return {};
}

Status compute_get_element(ComputeContext& c) {
  if (!c.has_input(0)) return error(Code::kRuntime, "the optional is empty, expected one with an element");
  if (c.inputs[0].kind() != AnyValue::Kind::kOptional) {
    c.outputs[0] = c.inputs[0];
    return {};
  }
  const Optional& optional = c.inputs[0].optional();
  if (!optional.value) return error(Code::kRuntime, "the optional is empty, expected one with an element");
  c.outputs[0] = *optional.value;
  return {};
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Optional, "") {
  op.since(15)
      .in("input", "V", Arity::kOptional)
      .out("output", "O")
      .optional("type", ir::AttributeKind::kTypeProto)
      .type("V", types::kAllTensors | sequences_of(types::kAllTensors))
      .type("O", optionals_of(types::kAllTensors) | optional_sequences_of(types::kAllTensors));
  op.since(28)
      .type("V", types::kAllTensorsIr14 | sequences_of(types::kAllTensorsIr14))
      .type("O", optionals_of(types::kAllTensorsIr14) | optional_sequences_of(types::kAllTensorsIr14));
  op.infer(infer_optional).compute(compute_optional).no_axes("it works on optional values");
}

TREADLE_OP(OptionalHasElement, "") {
  op.since(15)
      .in("input", "O")
      .out("output", "B")
      .type("O", optionals_of(types::kAllTensors) | optional_sequences_of(types::kAllTensors))
      .type("B", types::kBools);
  op.since(18)
      .in("input", "O", Arity::kOptional)
      .type("O", types::kAllTensors | sequences_of(types::kAllTensors) | optionals_of(types::kAllTensors) |
                     optional_sequences_of(types::kAllTensors));
  op.since(28).type("O", types::kAllTensorsIr14 | sequences_of(types::kAllTensorsIr14) |
                             optionals_of(types::kAllTensorsIr14) | optional_sequences_of(types::kAllTensorsIr14));
  op.infer(infer_has_element).compute(compute_has_element).no_axes("it works on optional values");
}

TREADLE_OP(OptionalGetElement, "") {
  op.since(15)
      .in("input", "O")
      .out("output", "V")
      .type("O", optionals_of(types::kAllTensors) | optional_sequences_of(types::kAllTensors))
      .type("V", types::kAllTensors | sequences_of(types::kAllTensors));
  op.since(18).type("O", types::kAllTensors | sequences_of(types::kAllTensors) | optionals_of(types::kAllTensors) |
                             optional_sequences_of(types::kAllTensors));
  op.since(28)
      .type("O", types::kAllTensorsIr14 | sequences_of(types::kAllTensorsIr14) | optionals_of(types::kAllTensorsIr14) |
                     optional_sequences_of(types::kAllTensorsIr14))
      .type("V", types::kAllTensorsIr14 | sequences_of(types::kAllTensorsIr14));
  op.infer(infer_get_element).compute(compute_get_element).can_fail().no_axes("it works on optional values");
}
