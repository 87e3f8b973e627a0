#include "opt/standard_site.h"

#include <fmt/format.h>

#include <unordered_map>

#include "op/node.h"
#include "op/registry.h"
#include "opt/bytes.h"
#include "opt/match.h"

namespace treadle::opt {

namespace {

// The readers of a LayerNormalization, counted by operator.
struct Readers {
  int64_t sums = 0, products = 0, sizes = 0, others = 0;
  const ir::Node* sum = nullptr;
};

void tally(Readers& readers, const ir::Node& node) {
  if (is(node, "Add")) {
    ++readers.sums;
    readers.sum = &node;
  } else {
    ++(is(node, "MatMul") ? readers.products : is(node, "Shape") ? readers.sizes : readers.others);
  }
}

std::string part_name(const ir::Node& node, std::string_view part) {
  return fmt::format("{}:{}", std::string_view(node.name), part);
}

}  // namespace

Facts::Facts(const ir::Region& top) : uses(top) {
  std::unordered_map<const ir::Value*, Readers> normalized;
  ir::for_each_node(top, [&](const ir::Node& node) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ir::Value* const v = node.inputs[i];
      if (!v) continue;
      if (i > 0 || !is(node, "Where")) beside_conditions.insert(v);
      if (is(v->producer, "LayerNormalization")) tally(normalized[v], node);
    }
    for (const auto& body : node.regions) {
      for (const ir::Value* v : body->outputs) beside_conditions.insert(v);
    }
  });
  for (const ir::Value* v : top.outputs) beside_conditions.insert(v);
  for (const auto& [v, readers] : normalized) {
    if (readers.sums != 1 || readers.products != 3 || readers.others != 0) continue;
    const ir::Value* const result = readers.sum->inputs[readers.sum->inputs[0] == v ? 1 : 0];
    if (!is(result->producer, "Add")) continue;
    attention_inputs.insert(v);
    attention_results.insert(result);
  }
}

ir::Value* Site::before(std::string_view op, std::initializer_list<ir::Value*> inputs, Type type, std::string_view part,
                        const ir::Attributes& attributes) {
  const std::string name = part_name(node(), part);
  const OpVersion* const version = version_of(op);
  ir::Node* const made = graph_.new_node(&region_, &require_op(op), version, name, at_++);
  for (const ir::Attribute& attribute : attributes.all()) made->attributes.set(attribute);
  for (ir::Value* v : inputs) graph_.add_input(made, v);
  return graph_.add_output(made, name, std::move(type));
}

ir::Value* Site::constant(Tensor tensor, std::string_view part) const {
  return graph_.new_constant(part_name(node(), part), std::move(tensor));
}

void Site::put(std::string_view op, std::initializer_list<ir::Value*> inputs, const ir::Attributes& attributes) {
  become(node(), require_op(op), *version_of(op), attributes);
  set_inputs(node(), inputs);
}

}  // namespace treadle::opt
