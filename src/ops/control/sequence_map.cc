#include "op/op_def.h"
#include "ops/control/bodies.h"

namespace treadle {

namespace {

using ir::Attribute;
using ir::Value;

bool is_sequence(const Type& type) {
  return type.kind == Type::Kind::kSequence;
}

Status infer_sequence_map(InferContext& ctx) {
  if (!ctx.bodies) return {};
  if (const ir::Region* body = ctx.bodies->region("body")) {
    TREADLE_TRY(check_body(ctx.node, *body, ctx.inputs.size(), ctx.outputs.size()));
  }
  std::vector<Type> arguments;
  for (size_t i = 0; i < ctx.inputs.size(); ++i) {
    if (!ctx.inputs[i]) return error(Code::kInvalidModel, "input {} is left out", i);
    const Type& type = ctx.input(i);
    if (i == 0 && type.is_known() && !is_sequence(type)) {
      return error(Code::kInvalidModel, "input_sequence is {}, expected a sequence", type.to_string());
    }
    arguments.push_back(is_sequence(type) && type.child ? *type.child : type);
  }
  TREADLE_ASSIGN(auto types, ctx.bodies->infer("body", std::move(arguments)));
  for (size_t i = 0; i < std::min(types.size(), ctx.outputs.size()); ++i) {
    if (types[i].is_known() && !types[i].is_tensor()) {
      return error(Code::kInvalidModel, "output {} of the body is {}, expected a tensor", i, types[i].to_string());
    }
    if (types[i].is_known()) ctx.set_output(i, Type::sequence(std::move(types[i])));
  }
  return {};
}

// for i in range(len(input_sequence)): append the body's outputs for the i-th elements to the output sequences.
Status lower_sequence_map(LowerContext& ctx) {
  const ir::Region* body = ctx.body("body");
  TREADLE_ASSERT(body);
  std::vector<Value*> inputs{ctx.call("SequenceLength", {ctx.input(0)}), nullptr};
  std::vector<Type> states;
  for (size_t i = 0; i < body->outputs.size(); ++i) {
    const Value* v = body->outputs[i];
    // If a node of the body fails with the sizes at hand, the type that the model states is better known.
    const Type& type = v->type.is_tensor() || i >= body->output_types.size() ? v->type : body->output_types[i];
    if (!type.is_tensor()) {
      return error(Code::kInvalidModel, "the element type of body output '{}' is not known, expected one", v->name);
    }
    const auto element = static_cast<int64_t>(type.element);
    inputs.push_back(ctx.call("SequenceEmpty", {}, {Attribute::of("dtype", element)}));
    states.push_back(Type::sequence(Type::tensor(type.element)));
  }
  ir::Node* loop = ctx.node("Loop", inputs, states.size());
  ctx.begin_region(loop, "body");
  Value* iteration = ctx.region_input("iteration", Type::tensor(ElementType::kInt64, Shape{}));
  Value* condition = ctx.region_input("condition", Type::tensor(ElementType::kBool, Shape{}));
  std::vector<Value*> sequences(states.size());
  for (size_t i = 0; i < states.size(); ++i) {
    sequences[i] = ctx.region_input("sequence_" + std::to_string(i), std::move(states[i]));
  }
  std::vector<Value*> elements(ctx.input_count());
  for (size_t i = 0; i < elements.size(); ++i) {
    Value* v = ctx.input(i);
    elements[i] = is_sequence(ctx.type(i)) ? ctx.call("SequenceAt", {v, iteration}) : v;
  }
  const std::vector<Value*> results = ctx.inline_body("body", elements);
  ctx.region_output(condition);
  for (size_t i = 0; i < results.size(); ++i) {
    ctx.region_output(ctx.call("SequenceInsert", {sequences[i], results[i]}));
  }
  ctx.end_region();
  for (size_t i = 0; i < loop->outputs.size(); ++i) ctx.set_output(i, loop->outputs[i]);
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(SequenceMap, "") {
  op.since(17)
      .in("input_sequence", "S")
      .in("additional_inputs", "V", Arity::kVariadicMixed, 0)
      .out("out_sequence", "S", Arity::kVariadicMixed)
      .required("body", ir::AttributeKind::kGraph)
      .type("S", sequences_of(types::kAllTensors))
      .type("V", types::kAllTensors | sequences_of(types::kAllTensors));
  op.infer(infer_sequence_map).lower(lower_sequence_map).no_axes("it works on sequences");
}
