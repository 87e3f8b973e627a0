#include "infer/bodies.h"

#include <algorithm>
#include <utility>

#include "op/type_rules.h"

namespace treadle {

namespace {

void forget_symbol(Type& type, std::string_view symbol) {
  for (Dim& d : type.shape) {
    if (depends_on(d, symbol)) d = Dim::unknown();
  }
}

}  // namespace

namespace {

bool is_empty(const LoopView::ScanInput& in) {
  const Type& type = in.whole->type;
  const int64_t axis = in.axis < 0 ? in.axis + type.rank() : in.axis;
  return type.has_shape && axis >= 0 && axis < type.rank() && type.shape[static_cast<size_t>(axis)].is_known(0);
}

}  // namespace

Reach Inference::Bodies::reach() const {
  const Reach around = driver_.reach_;
  if (around == Reach::kNever) return around;
  if (node_.op->control == Control::kIf) return Reach::kPerhaps;  // infer_if_known() handles a known condition
  if (!is_loop(node_) || (is_scan(node_) && node_.version->since < 9)) return around;
  const auto loop = LoopView::read(node_);
  if (!loop.ok()) return around;
  const Reach iterations =
      loop->is_scan() ? is_empty(loop->scan_input(0)) ? Reach::kNever : Reach::kSurely : reach_of_iterations(*loop);
  return std::max(around, iterations);
}

Reach Inference::Bodies::reach_of_iterations(const LoopView& loop) const {
  Reach reach = Reach::kSurely;
  if (loop.trip_count()) {
    const std::optional<Shape> count = driver_.contents(loop.trip_count());
    const Dim iterations = count && count->size() == 1 ? (*count)[0] : Dim();
    if (iterations.is_known() && iterations.value() <= 0) return Reach::kNever;
    if (iterations.lower_bound().value_or(0) < 1) reach = Reach::kPerhaps;
  }
  if (loop.condition()) {
    const Tensor* begins = driver_.constant(loop.condition());
    const bool is_known = begins && begins->type() == ElementType::kBool && begins->element_count() == 1;
    if (is_known && !*begins->data<bool>()) return Reach::kNever;
    if (!is_known) reach = Reach::kPerhaps;
  }
  return reach;
}

Result<std::vector<Type>> Inference::Bodies::infer(const char* attribute, std::vector<Type> inputs, size_t states) {
  ir::Region* body = node_.region(attribute);
  if (!body) return error(Code::kInvalidModel, "attribute {} is missing", attribute);
  if (inputs.size() != body->inputs.size()) {
    return error(Code::kInvalidModel, "the graph of attribute {} has {} inputs, expected {}", attribute,
                 body->inputs.size(), inputs.size());
  }
  if (driver_.options_.monitor) driver_.reached_.insert(body);
  if (driver_.as_onnx()) return infer_as_onnx(*body, std::move(inputs));
  const Reach around = std::exchange(driver_.reach_, reach());
  auto outputs = infer_iterations(*body, std::move(inputs), states);
  driver_.reach_ = around;
  return outputs;
}

Result<std::vector<Type>> Inference::Bodies::infer_iterations(ir::Region& body, std::vector<Type> inputs,
                                                              size_t states) {
  std::string iteration;
  if (node_.op->control == Control::kLoop) iteration = "iteration." + std::to_string(driver_.iteration_symbols_++);
  hints_.clear();
  const size_t first = before_states(node_.op->control, node_.version->since).body_inputs;
  for (size_t i = 0; i < states; ++i) hints_.push_back(driver_.declared(body.inputs[first + i]));
  find_least_sizes(inputs, first, states);
  for (;;) {
    start_iteration(body, inputs);
    if (is_loop(node_)) TREADLE_TRY(share_facts_of_constant_states());
    if (!iteration.empty()) set_loop_input_facts(iteration);
    TREADLE_TRY(driver_.infer(body));
    TREADLE_ASSIGN(const bool settled, unite_states(body, inputs, states));
    if (settled && keep_least_sizes(body, inputs)) break;
  }
  return outputs_of(body, iteration);
}

void Inference::Bodies::start_iteration(ir::Region& body, const std::vector<Type>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    ir::Value* value = body.inputs[i];
    driver_.forget(value);
    value->type = inputs[i];
    if (driver_.options_.name_unknowns) driver_.name_unknowns(value, value->type);
  }
  for (const LeastSize& size : least_sizes_) {
    if (changes(size, inputs)) body.inputs[size.input]->type.shape[size.axis] = Dim::at_least(size.least);
  }
}

void Inference::Bodies::find_least_sizes(const std::vector<Type>& initial, size_t first, size_t states) {
  least_sizes_.clear();
  if (driver_.options_.name_unknowns) return;
  const size_t outputs = before_states(node_.op->control, node_.version->since).body_outputs;
  for (size_t i = 0; i < states; ++i) {
    const Type& type = initial[first + i];
    if (!type.is_tensor() || !type.has_shape) continue;
    for (size_t axis = 0; axis < type.shape.size(); ++axis) {
      const int64_t least = type.shape[axis].lower_bound().value_or(0);
      if (least > 0) least_sizes_.push_back({first + i, outputs + i, axis, least});
    }
  }
}

bool Inference::Bodies::changes(const LeastSize& size, const std::vector<Type>& inputs) {
  const Type& type = inputs[size.input];
  return type.is_tensor() && type.has_shape && size.axis < type.shape.size() && type.shape[size.axis].is_unknown();
}

bool Inference::Bodies::keep_least_sizes(const ir::Region& body, const std::vector<Type>& inputs) {
  const size_t wrong = std::erase_if(least_sizes_, [&](const LeastSize& size) {
    if (!changes(size, inputs)) return false;
    const Type& out = body.outputs[size.output]->type;
    const bool has_size = out.is_tensor() && out.has_shape && size.axis < out.shape.size();
    return !has_size || out.shape[size.axis].lower_bound().value_or(0) < size.least;
  });
  return wrong == 0;
}

// A state that no iteration changes keeps its initial value.
Status Inference::Bodies::share_facts_of_constant_states() {
  const bool has_batch = node_.op->control == Control::kScan && node_.version->since < 9;
  if (has_batch || !driver_.options_.propagate) return {};
  TREADLE_ASSIGN(const LoopView loop, LoopView::read(node_));
  for (size_t i = 0; i < loop.states(); ++i) {
    const LoopView::State state = loop.state(i);
    if (state.initial && loop.stays_constant(i)) driver_.share_facts(state.initial, state.before);
  }
  return {};
}

// The counter is a symbol. The condition is true in every iteration.
void Inference::Bodies::set_loop_input_facts(const std::string& iteration) {
  const LoopView loop(node_);
  driver_.set_symbols(loop.counter(), {Dim::symbol(iteration)});
  const Type& condition = loop.condition_before()->type;
  if (condition.element != ElementType::kBool) return;
  Tensor yes = Tensor::scalar<bool>(ElementType::kBool, true);
  if (condition.is_concrete()) {
    if (known_element_count(condition.shape) != 1) return;
    yes = yes.reshaped(known_dims(condition.shape));
    driver_.set_constant(loop.condition_before(), std::move(yes));
  }
}

Result<bool> Inference::Bodies::unite_states(const ir::Region& body, std::vector<Type>& inputs, size_t states) {
  const BeforeStates before = before_states(node_.op->control, node_.version->since);
  bool settled = true;
  for (size_t i = 0; i < states; ++i) {
    Type& in = inputs[before.body_inputs + i];
    const Type& out = body.outputs[before.body_outputs + i]->type;
    if (!is_complete(in) || !is_complete(out)) continue;
    // A state that is an optional takes a value that the body returns without wrapping.
    if (in.kind == Type::Kind::kOptional && same_structure(*in.child, out)) continue;
    auto both = unite(in, out);
    if (!both.ok()) {
      return error(Code::kInvalidModel, "state {} goes into the body as {} and comes out as {}", i, in.to_string(),
                   out.to_string());
    }
    if (driver_.options_.keep_declared) take_hint(body, hints_[i], in, out, *both);
    if (identical(*both, in)) continue;
    in = std::move(both).value();
    settled = false;
  }
  return settled;
}

bool Inference::Bodies::is_nameless(const ir::Region& body, const Dim& size) const {
  if (size.is_unknown()) return true;
  const auto names = driver_.names_of_region_.find(&body);
  return size.is_symbolic() && names != driver_.names_of_region_.end() &&
         std::ranges::any_of(names->second, [&](const std::string& name) { return depends_on(size, name); });
}

void Inference::Bodies::take_hint(const ir::Region& body, Type& hint, const Type& in, const Type& out,
                                  Type& both) const {
  if (!both.is_tensor() || !hint.is_tensor() || !hint.has_shape) return;
  const auto fits = [&](const Type& type) { return !type.has_shape || type.shape.size() == hint.shape.size(); };
  if (!fits(in) || !fits(out)) {
    hint.has_shape = false;
    return;
  }
  if (!both.has_shape) {
    both.has_shape = true;
    both.shape.resize(hint.shape.size());
  }
  for (size_t i = 0; i < hint.shape.size(); ++i) {
    Dim& size = hint.shape[i];
    if (!both.shape[i].is_unknown()) continue;
    const bool enters = !in.has_shape || !in.shape[i].is_known() || !size.is_known() || same(in.shape[i], size);
    // Exporters often give different names to one size, as input and as output of a body.
    const bool named = !size.is_known() && out.has_shape && !out.shape[i].symbol_name().empty();
    const bool leaves = named || !out.has_shape || is_nameless(body, out.shape[i]) || same(out.shape[i], size);
    if (!enters || !leaves) size = Dim::unknown();
    both.shape[i] = size;
  }
}

// Sizes named after an iteration have no meaning outside of the loop.
std::vector<Type> Inference::Bodies::outputs_of(const ir::Region& body, const std::string& iteration) const {
  std::vector<Type> outputs;
  const auto names = driver_.names_of_region_.find(&body);
  for (const ir::Value* v : body.outputs) {
    Type& type = outputs.emplace_back(v ? v->type : Type());
    if (!iteration.empty()) forget_symbol(type, iteration);
    if (names == driver_.names_of_region_.end()) continue;
    for (const std::string& name : names->second) forget_symbol(type, name);
  }
  return outputs;
}

Result<std::vector<Type>> Inference::Bodies::infer_as_onnx(ir::Region& body, std::vector<Type> inputs) {
  if (node_.op->control == Control::kLoop) {
    TREADLE_ASSIGN(const LoopView loop, LoopView::read(node_));
    const size_t first = loop.signature().before.body_inputs;
    inputs[0] = Type::tensor(ElementType::kInt64);
    inputs[1] = loop.condition() ? loop.condition()->type : Type();
    for (size_t i = first; i < inputs.size(); ++i) {
      inputs[i].has_shape = false;
      inputs[i].shape.clear();
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type& declared = driver_.declared(body.inputs[i]);
    auto merged = merge(declared, inputs[i]);
    if (!merged.ok()) {
      return error(Code::kInvalidModel, "input {} of the body is declared as {}, but gets {}", i, declared.to_string(),
                   inputs[i].to_string());
    }
    body.inputs[i]->type = std::move(merged).value();
    driver_.forget(body.inputs[i]);
  }
  TREADLE_TRY(driver_.infer(body));
  std::vector<Type> outputs;
  for (const ir::Value* v : body.outputs) outputs.push_back(v->type);
  return outputs;
}

}  // namespace treadle
