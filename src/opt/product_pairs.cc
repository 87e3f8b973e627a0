// Two products whose results are added, outside of loops, become one node. A recurrence that a stream runs step by step
// has such a pair in every call: the product of its input and the product of its state.
#include "op/gemm.h"
#include "op/node.h"
#include "op/registry.h"
#include "opt/passes.h"
#include "opt/uses.h"

namespace treadle::opt {

namespace {

// With more rows, weights are read once for many of them, and the order in which they are does not matter.
constexpr int64_t kMostRows = 8;

bool is_plain_product(const ir::Node& node) {
  if (node.op->name != "Gemm" || !node.op->domain.empty()) return false;
  const ir::Attributes& attributes = node.attributes;
  const ir::Value* out = node.outputs[0];
  if (attributes.get_int("transA") != 0 || attributes.get_float("alpha", 1) != 1 ||
      attributes.get_float("beta", 1) != 1 || !out || !out->type.is_concrete() || !node.inputs[1]->is_constant()) {
    return false;
  }
  const bool is_wide = out->type.element == ElementType::kFloat || out->type.element == ElementType::kDouble;
  return is_wide && out->type.shape[0].value() <= kMostRows;
}

// The product that `v` is the result of, under whatever sizes, where nobody else looks at it.
const ir::Node* sole_product(const ir::Region* region, const ir::Value* v, const Uses& uses) {
  while (v && uses.once(v) && v->producer && v->producer->parent == region) {
    const ir::Node& node = *v->producer;
    if (is_plain_product(node)) return &node;
    if (node.op->alias_input < 0) return nullptr;
    v = node.inputs[static_cast<size_t>(node.op->alias_input)];
  }
  return nullptr;
}

bool are_alike(const ir::Node& a, const ir::Node& b) {
  return same(a.outputs[0]->type.shape, b.outputs[0]->type.shape) &&
         a.outputs[0]->type.element == b.outputs[0]->type.element &&
         a.attributes.get_int("transB") == b.attributes.get_int("transB") &&
         a.attributes.has(kHalfWeights) == b.attributes.has(kHalfWeights);
}

}  // namespace

void pair_products(ir::Graph& graph, Journal* /*journal*/) {
  const OpDef& pair = require_op("GemmPair", "treadle");
  const Uses uses(graph.top());
  ir::for_each_node(graph.top(), [&](ir::Node& node) {
    if (!is_plain_product(node) || node.inputs.size() < 3 || loop_around(*node.parent)) return;
    const ir::Node* first = sole_product(node.parent, node.inputs[2], uses);
    if (!first || !are_alike(*first, node)) return;
    decltype(node.inputs) inputs{first->inputs[0], first->inputs[1], node.inputs[0], node.inputs[1]};
    if (first->inputs.size() > 2) inputs.push_back(first->inputs[2]);
    ir::Attributes attributes;
    for (const char* name : {"transB", kHalfWeights}) {
      if (const ir::Attribute* attribute = node.attributes.find(name)) attributes.set(*attribute);
    }
    become(node, pair, attributes);
    node.inputs = std::move(inputs);
    node.input_count = static_cast<uint32_t>(node.inputs.size());
  });
}

}  // namespace treadle::opt
