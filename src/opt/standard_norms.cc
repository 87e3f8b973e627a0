// Norms and activations that exporters write as the nodes of their equations.
#include <array>
#include <cmath>
#include <numbers>

#include "op/axes.h"
#include "op/registry.h"
#include "opt/match.h"
#include "opt/standard_site.h"

namespace treadle::opt {

namespace {

// The other operand of `node`, an Add or Mul, one of whose operands a node `op` makes for it alone; `made` is set to
// that node.
ir::Value* beside(const Site& site, const ir::Node& node, std::string_view op, ir::Node*& made) {
  for (size_t i = 0; i < 2; ++i) {
    made = sole_producer(node, node.inputs[i], site.uses(), {op});
    if (made) return node.inputs[1 - i];
  }
  return nullptr;
}

// The node that makes `v`, if it is an `op`; others may read it too.
const ir::Node* producer(const ir::Value* v, std::string_view op) {
  return v && is(v->producer, op) ? v->producer : nullptr;
}

bool is_mean_of_last_axis(const ir::Node& mean) {
  const auto axes = constant_axes(mean, 1);
  const int64_t rank = mean.inputs[0]->type.rank();
  return axes && axes->size() == 1 && rank > 0 && from_front(axes->front(), rank) == rank - 1 &&
         mean.attributes.get_int("keepdims", 1) == 1;
}

// Whether `v` is x minus its mean, and the mean has no other reader.
bool is_centred(const ir::Value* v, const ir::Value* x, const Uses& uses) {
  const ir::Node* const sub = producer(v, "Sub");
  const ir::Node* const mean = sub && sub->inputs[0] == x ? producer(sub->inputs[1], "ReduceMean") : nullptr;
  return mean && mean->inputs[0] == x && is_mean_of_last_axis(*mean) && uses.count(sub->inputs[1]) == 1;
}

// Whether `list` has one element for each position along the last axis of `x`.
bool is_list_along(const ir::Value* list, const ir::Value* x) {
  return list && list->type.has_shape && list->type.shape.size() == 1 && list->type.element == x->type.element &&
         same(list->type.shape[0], x->type.shape.back());
}

}  // namespace

// (x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + bias, all along the last axis.
bool is_layer_normalization(Site& site) {
  // In earlier standard operator sets, onnxruntime had a LayerNormalization of its own.
  const OpVersion* const version = site.version_of("LayerNormalization");
  if (!version || version->since < 17) return false;
  ir::Node& add = site.node();
  ir::Node *mul = nullptr, *div = nullptr, *variance = nullptr;
  ir::Value* const bias = beside(site, add, "Mul", mul);
  ir::Value* const scale = bias ? beside(site, *mul, "Div", div) : nullptr;
  const Uses& uses = site.uses();
  const ir::Node* const root = scale ? sole_producer(*div, div->inputs[1], uses, {"Sqrt"}) : nullptr;
  const ir::Node* const sum = root ? sole_producer(*root, root->inputs[0], uses, {"Add"}) : nullptr;
  const ir::Value* const epsilon = sum ? beside(site, *sum, "ReduceMean", variance) : nullptr;
  if (!epsilon || !epsilon->is_constant() || epsilon->constant.element_count() != 1) return false;
  const ir::Node* const square = sole_producer(*variance, variance->inputs[0], uses, {"Pow"});
  const ir::Node* const sub = square ? producer(div->inputs[0], "Sub") : nullptr;
  if (!sub || square->inputs[0] != div->inputs[0] || uses.count(div->inputs[0]) != 2 ||
      !is_number(square->inputs[1], 2) || !is_mean_of_last_axis(*variance)) {
    return false;
  }
  ir::Value* const x = sub->inputs[0];
  if (!is_centred(div->inputs[0], x, uses) || !is_list_along(scale, x) || !is_list_along(bias, x)) return false;
  const auto number = static_cast<float>(epsilon->constant.double_at(0));
  site.put("LayerNormalization", {x, scale, bias});
  add.attributes.set(ir::Attribute::of("axis", -1));
  add.attributes.set(ir::Attribute::of("epsilon", number));
  return true;
}

// x * 0.5 * (erf(x / sqrt(2)) + 1), with factors in any order.
bool is_gelu(Site& site) {
  const ir::Node& mul = site.node();
  if (!site.version_of("Gelu")) return false;
  ir::Node* inner = nullptr;
  ir::Value* const outer = beside(site, mul, "Mul", inner);
  if (!outer) return false;
  const std::array<ir::Value*, 3> factors{outer, inner->inputs[0], inner->inputs[1]};
  ir::Value* x = nullptr;
  const ir::Node* sum = nullptr;
  bool halves = false;
  for (size_t i = 0; i < 3; ++i) {
    ir::Node* const made = sole_producer(i == 0 ? mul : *inner, factors[i], site.uses(), {"Add"});
    ir::Node* erf = nullptr;
    if (is_number(factors[i], 0.5)) {
      halves = true;
    } else if (const ir::Value* one = made ? beside(site, *made, "Erf", erf) : nullptr; one && is_number(one, 1)) {
      sum = erf;
    } else {
      x = factors[i];
    }
  }
  const ir::Node* const div = halves && sum && x ? sole_producer(*sum, sum->inputs[0], site.uses(), {"Div"}) : nullptr;
  const bool is_half = byte_width(mul.outputs[0]->type.element) < 4;
  if (!div || div->inputs[0] != x || !is_number(div->inputs[1], std::numbers::sqrt2, is_half ? 1e-3 : 1e-6))
    return false;
  site.put("Gelu", {x});
  return true;
}

bool is_hard_swish(Site& site) {
  ir::Value* const x = site.node().inputs[0];
  ir::Attributes attributes;
  attributes.set(ir::Attribute::of("alpha", 1.0f / 6));
  attributes.set(ir::Attribute::of("beta", 0.5f));
  site.put("Mul", {x, site.before("HardSigmoid", {x}, x->type, "sigmoid", attributes)});
  return true;
}

bool is_mish(Site& site) {
  ir::Value* const x = site.node().inputs[0];
  ir::Value* const soft = site.before("Softplus", {x}, x->type, "softplus");
  site.put("Mul", {x, site.before("Tanh", {soft}, x->type, "tanh")});
  return true;
}

}  // namespace treadle::opt
