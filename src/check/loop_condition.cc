#include "check/loop_condition.h"

#include <algorithm>

#include "check/walk.h"

namespace treadle::checking {

bool is_bool(const wire::TensorProto& tensor, bool wanted) {
  if (tensor.data_type != static_cast<int32_t>(ElementType::kBool)) return false;
  if (tensor.raw_data && tensor.raw_data->size() == 1) return ((*tensor.raw_data)[0] != 0) == wanted;
  size_t count = 0;
  bool value = false;
  tensor.int32_data.for_each([&](int32_t v) {
    value = v != 0;
    ++count;
  });
  return count == 1 && value == wanted;
}

Makers::Makers(const wire::GraphProto& graph) {
  add(graph.nodes);
  for (const wire::TensorProto& tensor : graph.initializers) initializers_.emplace(tensor.name, &tensor);
}

void Makers::add(const wire::List<wire::NodeProto>& nodes) {
  for (const wire::NodeProto& node : nodes) {
    for (const std::string_view output : node.outputs) makers_.emplace(output, &node);
  }
}

std::string_view Makers::behind_identities(std::string_view name) const {
  for (size_t steps = 0; steps <= makers_.size(); ++steps) {
    const wire::NodeProto* node = maker(name);
    if (!node || node->op_type != "Identity" || node->inputs.size() != 1) break;
    name = node->inputs[0];
  }
  return name;
}

const wire::TensorProto* Makers::constant(std::string_view name) const {
  if (const auto it = initializers_.find(name); it != initializers_.end()) return it->second;
  const wire::NodeProto* node = maker(name);
  if (!node || node->op_type != "Constant") return nullptr;
  const wire::AttributeProto* value = find_attribute(*node, "value");
  return value && value->t ? &*value->t : nullptr;
}

namespace {

class StaysTrue {
 public:
  StaysTrue(const wire::NodeProto& loop, const wire::GraphProto& body, Functions& functions)
      : body_(body), outside_(loop.inputs.size() > 1 ? loop.inputs[1] : std::string_view()), functions_(functions) {}

  bool in_body(std::string_view name, const Makers& makers) { return stays(name, {makers}, 0); }

 private:
  // The Loop's body, a branch inside of it, or the function that `call` calls.
  struct Scope {
    const Makers& makers;
    const Scope* outer = nullptr;  // null: this is the body
    const wire::NodeProto* call = nullptr;
    const wire::FunctionProto* function = nullptr;
  };

  // Beyond these limits the answer is no: models written by hand stay below them.
  static constexpr size_t kMostSteps = 10'000;
  static constexpr int kMostDepth = 100;

  bool stays(std::string_view name, const Scope& scope, int depth) {
    if (++steps_ > kMostSteps || depth > kMostDepth) return false;
    name = scope.makers.behind_identities(name);
    if (const wire::TensorProto* constant = scope.makers.constant(name)) return is_bool(*constant, true);
    const wire::NodeProto* node = scope.makers.maker(name);
    if (!node) return comes_in(name, scope, depth);
    if (const wire::FunctionProto* function = functions_.function_of(*node)) {
      const size_t output = position(node->outputs, name);
      if (output >= function->outputs.size()) return false;
      return stays(function->outputs[output], {functions_.makers_of(*function), &scope, node, function}, depth + 1);
    }
    if (!canonical_domain(node->domain).empty()) return false;
    const auto input_stays = [&](std::string_view input) { return stays(input, scope, depth + 1); };
    if (node->op_type == "And") return std::ranges::all_of(node->inputs, input_stays);
    if (node->op_type == "Or") return std::ranges::any_of(node->inputs, input_stays);
    return node->op_type == "If" && stays_in(*node, "then_branch", name, scope, depth) &&
           stays_in(*node, "else_branch", name, scope, depth);
  }

  bool stays_in(const wire::NodeProto& node, std::string_view branch, std::string_view name, const Scope& scope,
                int depth) {
    const wire::AttributeProto* attribute = find_attribute(node, branch);
    const size_t output = position(node.outputs, name);
    if (!attribute || !attribute->g || output >= attribute->g->outputs.size()) return false;
    const Makers makers(*attribute->g);
    return stays(attribute->g->outputs[output].name, {makers, &scope}, depth + 1);
  }

  // Whether a name that no node of the scope makes is true.
  bool comes_in(std::string_view name, const Scope& scope, int depth) {
    if (scope.function) {
      const size_t input = position(scope.function->inputs, name);
      return input < scope.call->inputs.size() && stays(scope.call->inputs[input], *scope.outer, depth + 1);
    }
    if (scope.outer) return stays(name, *scope.outer, depth + 1);
    for (size_t i = 0; i < body_.inputs.size(); ++i) {
      if (body_.inputs[i].name == name) return i == 1;
    }
    // Iterations do not change outer values, and the Loop begins only if this one is true.
    return !name.empty() && name == outside_;
  }

  static size_t position(const wire::List<std::string_view>& names, std::string_view name) {
    size_t i = 0;
    while (i < names.size() && names[i] != name) ++i;
    return i < names.size() ? i : SIZE_MAX;
  }

  const wire::GraphProto& body_;
  const std::string_view outside_;
  Functions& functions_;
  size_t steps_ = 0;
};

}  // namespace

bool condition_stays_true(const wire::NodeProto& loop, const wire::GraphProto& body, const Makers& makers,
                          Functions& functions) {
  return StaysTrue(loop, body, functions).in_body(body.outputs[0].name, makers);
}

}  // namespace treadle::checking
