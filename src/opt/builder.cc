#include "opt/builder.h"

#include "op/place.h"
#include "op/registry.h"

namespace treadle::opt {

namespace {

// Finds operators of models, and the internal operators that only rewrites make.
const OpDef& op_named(std::string_view name) {
  const OpDef* op = find_op("", name);
  return op ? *op : require_op(name, "treadle");
}

}  // namespace

std::unique_ptr<ir::Node> take_out(ir::Region& region, size_t at) {
  std::unique_ptr<ir::Node> node = std::move(region.nodes[at]);
  region.nodes.erase(region.nodes.begin() + static_cast<std::ptrdiff_t>(at));
  return node;
}

ir::Node* Builder::node(std::string_view op_name, std::string_view name,
                        std::initializer_list<ir::Attribute> attributes) {
  const OpDef& op = op_named(op_name);
  ir::Node* made = graph_.new_node(&region_, &op, &op.newest(), name, at_++);
  for (const ir::Attribute& attribute : attributes) made->attributes.set(attribute);
  if (whole_) made->attributes.set(named_as(*whole_));
  return made;
}

ir::Value* Builder::call(std::string_view op, std::span<ir::Value* const> inputs, Type type, std::string_view name,
                         std::initializer_list<ir::Attribute> attributes) {
  ir::Node* made = node(op, name, attributes);
  for (ir::Value* v : inputs) graph_.add_input(made, v);
  return graph_.add_output(made, name, std::move(type));
}

ir::Value* Builder::int64s(std::initializer_list<int64_t> numbers, std::string_view name) {
  return int64s(std::span(numbers.begin(), numbers.size()), name);
}

ir::Value* Builder::int64s(std::span<const int64_t> numbers, std::string_view name) {
  return graph_.new_constant(name, Tensor::of_int64(numbers));
}

void Builder::adopt(std::unique_ptr<ir::Node> node) {
  node->parent = &region_;
  for (ir::Value* v : node->outputs) {
    if (v) v->owner = &region_;
  }
  region_.nodes.insert(region_.nodes.begin() + static_cast<std::ptrdiff_t>(at_++), std::move(node));
}

void Builder::adopt_all(ir::Region& from) {
  for (auto& node : from.nodes) adopt(std::move(node));
  from.nodes.clear();
}

}  // namespace treadle::opt
