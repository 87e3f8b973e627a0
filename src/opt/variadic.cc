// Max, Min, Sum and Mean of more than two operands become a chain of two at a time, in their order: nodes like any
// other, which join the elementwise groups around them.
//
//   Min(a, b, c)   becomes   m = Min(a, b); Min(m, c)          Mean(a, b, c)   becomes   Div(Sum(Sum(a, b), c), 3)
//
// Only of types that are computed with as they are stored, so that nothing is rounded in between that was not before.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "kernels/convert.h"
#include "op/op_def.h"
#include "op/registry.h"
#include "opt/passes.h"
#include "type/make_tensor.h"

namespace treadle::opt {

namespace {

bool is_stored_as_computed(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
    case ElementType::kDouble:
    case ElementType::kInt32:
    case ElementType::kInt64:
    case ElementType::kUint32:
    case ElementType::kUint64:
      return true;
    default:
      return false;
  }
}

bool is_mean(const ir::Node& node) {
  return node.op->name == "Mean";
}

bool can_split(const ir::Node& node) {
  const OpDef& op = *node.op;
  const bool folds = op.domain.empty() && (op.name == "Max" || op.name == "Min" || op.name == "Sum" || is_mean(node));
  if (!folds || node.inputs.size() <= 2 || node.outputs.size() != 1 || !node.outputs[0]) return false;
  const auto known = [](const ir::Value* v) { return v && v->type.is_concrete(); };
  return known(node.outputs[0]) && std::all_of(node.inputs.begin(), node.inputs.end(), known) &&
         is_stored_as_computed(node.outputs[0]->type.element);
}

class Splitter {
 public:
  explicit Splitter(ir::Graph& graph) : graph_(graph) {}

  void walk(ir::Region& region) {
    for (size_t at = 0; at < region.nodes.size(); ++at) {
      for (auto& body : region.nodes[at]->regions) walk(*body);
      if (can_split(*region.nodes[at])) at = split(region, at);  // the chain's last node
    }
  }

  std::unordered_map<ir::Value*, ir::Value*> replaced;

 private:
  size_t split(ir::Region& region, size_t at) {
    const std::unique_ptr<ir::Node> node = std::move(region.nodes[at]);
    region.nodes.erase(region.nodes.begin() + static_cast<std::ptrdiff_t>(at));
    const OpDef& op = is_mean(*node) ? require_op("Sum") : *node->op;
    ir::Value* acc = node->inputs[0];
    for (size_t i = 1; i < node->inputs.size(); ++i) {
      const bool last = i + 1 == node->inputs.size() && !is_mean(*node);
      acc = combine(region, at++, op, *node, {acc, node->inputs[i]}, last ? "" : fmt::format(":part{}", i));
    }
    if (is_mean(*node)) acc = combine(region, at++, require_op("Div"), *node, {acc, count_of_inputs(*node)}, "");
    replaced[node->outputs[0]] = acc;
    return at - 1;
  }

  // `part`: added to the names of `whole` and its result.
  ir::Value* combine(ir::Region& region, size_t at, const OpDef& op, const ir::Node& whole,
                     std::array<ir::Value*, 2> operands, const std::string& part) {
    const ir::Value& result = *whole.outputs[0];
    ir::Node* node = graph_.new_node(&region, &op, &op.newest(), std::string(whole.name) + part, at);
    for (ir::Value* v : operands) graph_.add_input(node, v);
    Shape shape = operands[0]->type.shape;
    if (!broadcast_into(shape, operands[1]->type.shape).ok()) shape = result.type.shape;
    return graph_.add_output(node, std::string(result.name) + part,
                             Type::tensor(result.type.element, std::move(shape)));
  }

  ir::Value* count_of_inputs(const ir::Node& node) {
    const ElementType type = node.outputs[0]->type.element;
    const auto count = static_cast<int64_t>(node.inputs.size());
    Tensor number = make_tensor(type, {});
    kernels::cast(ElementType::kInt64, type, &count, number.mutable_raw(), 1);
    return graph_.new_constant(std::string(node.name) + ":count", std::move(number));
  }

  ir::Graph& graph_;
};

}  // namespace

void split_variadic(ir::Graph& graph, Journal* /*journal*/) {
  Splitter splitter(graph);
  splitter.walk(graph.top());
  if (!splitter.replaced.empty()) ir::replace_uses(graph, splitter.replaced);
}

}  // namespace treadle::opt
