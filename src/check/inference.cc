// Loop states: a body is inferred with the types its states come in with; where a state comes out with another type,
// the two are united (sizes that differ become unknown, unlike ranks drop the shape) and the body is inferred again. A
// size can only lose knowledge, once, so this ends after at most a trip per size and one for the rank.
#include "check/inference.h"

#include <algorithm>

#include "judge/judge.h"

namespace treadle {

namespace {

// Folding never makes more than this out of less.
constexpr int64_t kMaxFoldedElements = int64_t{1} << 20;
constexpr size_t kMaxSymbolElements = 256;

void forget_symbol(Type& type, std::string_view symbol) {
  for (Dim& d : type.shape) {
    if (depends_on(d, symbol)) d = Dim::unknown();
  }
}

bool is_small_integer(const Type& type) {
  return type.is_tensor() && is_integer(type.element) && type.has_shape && type.shape.size() <= 1;
}

}  // namespace

std::string node_place(const ir::Node& node) {
  return fmt::format("{} ({}-{})", node.name, node.op->name, node.version->since);
}

const Tensor* Inference::constant(const ir::Value* value) const {
  if (!value) return nullptr;
  if (value->is_constant()) return &value->constant;
  const auto it = facts_.find(value);
  return it != facts_.end() && it->second.constant.defined() ? &it->second.constant : nullptr;
}

const Shape* Inference::symbols(const ir::Value* value) const {
  const auto it = facts_.find(value);
  return it != facts_.end() && it->second.has_symbols ? &it->second.symbols : nullptr;
}

void Inference::set_constant(const ir::Value* value, Tensor contents) {
  Fact& fact = facts_[value];
  fact.constant = std::move(contents);
  fact.has_symbols = false;
}

void Inference::set_symbols(const ir::Value* value, Shape contents) {
  Fact& fact = facts_[value];
  fact.constant = {};
  fact.has_symbols = true;
  fact.symbols = std::move(contents);
}

class Inference::Bodies final : public BodyInference {
 public:
  Bodies(Inference& driver, ir::Node& node) : driver_(driver), node_(node) {}

  const ir::Region* region(const char* attribute) const override { return node_.region(attribute); }

  Result<std::vector<Type>> infer(const char* attribute, std::vector<Type> inputs, size_t first_state_in,
                                  size_t first_state_out, size_t states) override {
    ir::Region* body = node_.region(attribute);
    if (!body) return error(Code::kInvalidModel, "attribute {} is missing", attribute);
    if (inputs.size() != body->inputs.size()) {
      return error(Code::kInvalidModel, "the graph of attribute {} has {} inputs, expected {}", attribute,
                   body->inputs.size(), inputs.size());
    }
    std::string trip;
    if (node_.op->control == Control::kLoop) trip = "trip." + std::to_string(driver_.trip_symbols_++);
    for (;;) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        body->inputs[i]->type = inputs[i];
        driver_.forget(body->inputs[i]);
      }
      if (!trip.empty()) know_loop_inputs(*body, trip);
      TREADLE_TRY(driver_.infer(*body));
      TREADLE_ASSIGN(const bool settled, unite_states(*body, inputs, first_state_in, first_state_out, states));
      if (settled) break;
    }
    std::vector<Type> outputs;
    for (const ir::Value* v : body->outputs) {
      outputs.push_back(v ? v->type : Type());
      if (!trip.empty()) forget_symbol(outputs.back(), trip);
    }
    return outputs;
  }

 private:
  // The trip counter is a symbol; a trip that runs has a true condition.
  void know_loop_inputs(const ir::Region& body, const std::string& trip) {
    if (body.inputs.size() < 2) return;
    driver_.set_symbols(body.inputs[0], {Dim::symbol(trip)});
    const Type& condition = body.inputs[1]->type;
    if (condition.element != ElementType::kBool) return;
    Tensor yes = Tensor::scalar<bool>(ElementType::kBool, true);
    if (condition.is_concrete()) {
      if (element_count_unchecked(known_dims(condition.shape)) != 1) return;
      yes = yes.reshaped(known_dims(condition.shape));
      driver_.set_constant(body.inputs[1], std::move(yes));
    }
  }

  Result<bool> unite_states(const ir::Region& body, std::vector<Type>& inputs, size_t first_in, size_t first_out,
                            size_t states) {
    bool settled = true;
    for (size_t i = 0; i < states; ++i) {
      Type& in = inputs[first_in + i];
      if (first_out + i >= body.outputs.size()) continue;
      const Type& out = body.outputs[first_out + i]->type;
      if (!in.is_known() || !out.is_known()) continue;
      // An optional that the body fills stays one.
      if (in.kind == Type::Kind::kOptional && same_structure(*in.child, out)) continue;
      auto both = unite(in, out);
      if (!both.ok()) {
        return error(Code::kInvalidModel, "state {} goes into the body as {} and comes out as {}", i, in.to_string(),
                     out.to_string());
      }
      if (identical(*both, in)) continue;
      in = std::move(both).value();
      settled = false;
    }
    return settled;
  }

  Inference& driver_;
  ir::Node& node_;
};

Status Inference::infer(ir::Region& region) {
  for (auto& node : region.nodes) {
    TREADLE_TRY(infer(*node));
  }
  return {};
}

Status Inference::infer(ir::Node& node) {
  const Tensor* condition = node.op->control == Control::kIf ? constant(node.inputs[0]) : nullptr;
  Status status = condition ? infer_if_known(node, *condition) : infer_with_record(node);
  if (!status.ok()) {
    // The innermost node that failed has put its place already.
    return status.place().empty() ? std::move(status).in(node_place(node)) : std::move(status);
  }
  return {};
}

Status Inference::infer_if_known(ir::Node& node, const Tensor& condition) {
  if (condition.element_count() != 1 || condition.type() != ElementType::kBool) {
    return error(Code::kInvalidModel, "cond must be one bool");
  }
  ir::Region& branch = *node.region(*condition.data<bool>() ? "then_branch" : "else_branch");
  if (branch.outputs.size() != node.outputs.size()) {
    return error(Code::kInvalidModel, "{} has {} outputs, the node {}", branch.attribute, branch.outputs.size(),
                 node.outputs.size());
  }
  TREADLE_TRY(infer(branch));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    ir::Value* out = node.outputs[i];
    if (!out) continue;
    forget(out);
    if (!branch.outputs[i]) continue;
    out->type = branch.outputs[i]->type;
    if (const Tensor* t = constant(branch.outputs[i])) {
      set_constant(out, *t);
    } else if (const Shape* s = symbols(branch.outputs[i])) {
      set_symbols(out, *s);
    }
  }
  return {};
}

Status Inference::infer_with_record(ir::Node& node) {
  const size_t inputs = node.inputs.size(), outputs = node.outputs.size();
  std::vector<const Type*> types(inputs);
  std::vector<const Tensor*> values(inputs);
  std::vector<const Shape*> known_symbols(inputs);
  bool containers = false;
  for (size_t i = 0; i < inputs; ++i) {
    const ir::Value* v = node.inputs[i];
    if (!v) continue;
    types[i] = &v->type;
    values[i] = constant(v);
    known_symbols[i] = symbols(v);
    containers |= v->type.is_known() && !v->type.is_tensor();
  }
  std::vector<Type> out_types(outputs);
  std::vector<Shape> out_symbols(outputs);
  const auto known = std::make_unique<bool[]>(outputs + 1);
  Bodies bodies(*this, node);
  InferContext context{node, types, values, known_symbols, out_types, out_symbols, {known.get(), outputs}, &bodies};
  TREADLE_TRY(node.op->infer(context));
  for (size_t i = 0; i < outputs; ++i) {
    ir::Value* v = node.outputs[i];
    if (!v) continue;
    Type inferred = std::move(out_types[i]);
    const bool from_container = containers && node.op->control == Control::kNone;
    if (from_container && !options_.trust_containers && inferred.is_tensor()) inferred = Type::tensor(inferred.element);
    if (options_.keep_declared) {
      auto merged = merge(v->type, inferred);
      v->type = merged.ok() ? std::move(merged).value() : std::move(inferred);
    } else {
      v->type = std::move(inferred);
    }
    forget(v);
    if (!known[i] || !is_small_integer(v->type) || out_symbols[i].size() > kMaxSymbolElements) continue;
    set_symbols(v, std::move(out_symbols[i]));
  }
  if (options_.fold) fold(node);
  return {};
}

namespace {

// The tensor that `symbols` spell out, if they are all numbers.
bool tensor_of_symbols(const Type& type, const Shape& symbols, Tensor& tensor) {
  if (!type.is_concrete() || !is_known(symbols)) return false;
  const Dims dims = known_dims(type.shape);
  if (element_count_unchecked(dims) != static_cast<int64_t>(symbols.size())) return false;
  if (type.element == ElementType::kInt64) {
    tensor = Tensor::allocate(type.element, dims).value();
    for (size_t i = 0; i < symbols.size(); ++i) tensor.mutable_data<int64_t>()[i] = symbols[i].value();
    return true;
  }
  if (type.element == ElementType::kInt32) {
    tensor = Tensor::allocate(type.element, dims).value();
    for (size_t i = 0; i < symbols.size(); ++i)
      tensor.mutable_data<int32_t>()[i] = static_cast<int32_t>(symbols[i].value());
    return true;
  }
  return false;
}

}  // namespace

void Inference::fold(ir::Node& node) {
  for (ir::Value* v : node.outputs) {
    const Shape* known = v ? symbols(v) : nullptr;
    Tensor tensor;
    if (known && tensor_of_symbols(v->type, *known, tensor)) set_constant(v, std::move(tensor));
  }
  const OpDef& op = *node.op;
  if (op.control != Control::kNone || !node.regions.empty() || op.effects == Effects::kRandom) return;
  int64_t elements = 0;
  std::vector<AnyValue> inputs;
  for (const ir::Value* v : node.inputs) {
    if (!v) {
      inputs.emplace_back();
      continue;
    }
    const Tensor* t = constant(v);
    if (!t) return;
    elements += t->element_count();
    inputs.emplace_back(*t);
  }
  bool wanted = false;
  for (const ir::Value* v : node.outputs) {
    if (!v) continue;
    if (constant(v)) continue;
    if (!v->type.is_tensor()) return;
    if (v->type.is_concrete()) {
      const auto count = element_count(known_dims(v->type.shape));
      if (!count.ok() || *count > std::max(kMaxFoldedElements, 2 * elements)) return;
    }
    wanted = true;
  }
  if (!wanted) return;
  auto results = judge::run_node(node, inputs);
  if (!results.ok()) return;  // the run will say so, if it gets here
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] && (*results)[i].is_tensor()) {
      const Tensor& t = (*results)[i].tensor();
      node.outputs[i]->type = Type::tensor(t.type(), to_shape(t.dims()));
      set_constant(node.outputs[i], t);
    }
  }
}

}  // namespace treadle
