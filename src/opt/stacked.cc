// The stacked results have the bits of the single iterations, because kernels treat rows alike: elementwise operations,
// products with weights (rows do not depend on each other), and operators that work along other axes.
#include "opt/stacked.h"

#include <fmt/format.h>

#include <algorithm>

#include "op/effects.h"
#include "op/op_def.h"
#include "op/registry.h"

namespace treadle::opt {

namespace {

// The depth of a product from which stacking always pays. Smaller ones gain in the interpreter alone: with a depth of 4
// an iteration takes 38 ns in place of 86, in native code 80 either way (measured, 64 columns).
constexpr int64_t kLeastDepth = 8;
// Elements of one value over all iterations, if these are counted: bounds memory, to 64 MB of floats.
constexpr int64_t kMaxWholeElements = int64_t{1} << 24;

size_t rank(const ir::Value* v) {
  return v->type.shape.size();
}

bool fits(const ir::Value& v, const Dim& iterations) {
  const int64_t count = count_of(v);
  return count > 0 && (!iterations.is_known() || iterations.value() <= kMaxWholeElements / count);
}

}  // namespace

int64_t count_of(const ir::Value& v) {
  constexpr int64_t kMost = int64_t{1} << 48;
  const Result<int64_t> count = element_count(known_dims(v.type.shape));
  return count.ok() ? std::min(*count, kMost) : kMost;
}

bool is_invariant(const ir::Value* v, const ir::Region& body) {
  return !v || v->is_constant() || v->owner != &body;
}

bool runs_stacked(const ir::Node& node, const Varies& varies, const Dim& iterations) {
  if (!is_total(node) || !node.inputs[0] || std::none_of(node.inputs.begin(), node.inputs.end(), varies)) return false;
  const auto is_small = [&](const ir::Value* v) { return !v || fits(*v, iterations); };
  return std::all_of(node.outputs.begin(), node.outputs.end(), is_small) && stack_node(node, varies, iterations).ok();
}

bool is_product_with_weights(const ir::Node& node, const Varies& varies) {
  if (node.op->product == Product::kNone) return false;
  const ir::Value *rows = node.inputs[node.op->factors[0]], *weights = node.inputs[node.op->factors[1]];
  if (!varies(rows) || varies(weights)) return false;
  if (node.op->product == Product::kConvolution) {
    return count_of(*weights) / std::max<int64_t>(weights->type.shape[0].value(), 1) >= kLeastDepth;
  }
  return rank(weights) == 2 && rank(rows) > 0 && rows->type.shape[rank(rows) - 1].value() >= kLeastDepth;
}

bool FromScanInputs::begin(const LoopView& scan) {
  for (size_t i = 0; i < scan.scan_inputs(); ++i) {
    const LoopView::ScanInput in = scan.scan_input(i);
    if (in.axis != 0 || !in.whole->type.has_shape || in.whole->type.shape.empty()) return false;
    reverse_[in.element] = in.reverse;
    iterations_ = in.whole->type.shape[0];
  }
  return true;
}

bool FromScanInputs::add_results(const ir::Node& node, const ir::Region& body) {
  std::optional<bool> reverse;
  for (const ir::Value* v : node.inputs) {
    if (is_invariant(v, body)) continue;
    const auto it = reverse_.find(v);
    if (it == reverse_.end() || (reverse && it->second != *reverse)) return false;
    reverse = it->second;
  }
  if (!reverse || !runs_stacked(node, varies(), iterations_)) return false;
  for (const ir::Value* v : node.outputs) {
    if (v) reverse_[v] = *reverse;
  }
  return true;
}

Shape StackedNodes::with_iterations(const Shape& element) const {
  Shape whole{iterations_};
  for (const Dim& d : element) whole.push_back(d);
  return whole;
}

void StackedNodes::add(std::unique_ptr<ir::Node> node) {
  for (ir::Value* v : node->outputs) {
    if (v) v->producer = nullptr;
  }
  const Result<Stacked> how = stack_node(*node, [&](const ir::Value* v) { return has(v); }, iterations_);
  TREADLE_ASSERT(how.ok());
  if (how->way == Stacked::Way::kWidened) return add_widened(std::move(node), *how);
  if (how->way == Stacked::Way::kMerged) return add_merged(std::move(node));
  const ir::Value* element = node->outputs[0];
  const ir::Value* moved = node->inputs[static_cast<size_t>(node->op->alias_input)];
  set(element, reshaped(whole(moved), iterations_, known_dims(element->type.shape), std::string(node->name)));
}

// Replaces the node's outputs by new ones, whose sizes `sizes` computes from the old ones; returns pairs of old and new
// outputs.
template <class Sizes>
std::vector<std::pair<const ir::Value*, ir::Value*>> StackedNodes::new_outputs(ir::Node& node, Sizes&& sizes) {
  std::vector<std::pair<const ir::Value*, ir::Value*>> made;
  for (ir::Value*& v : node.outputs) {
    if (!v) continue;
    const ir::Value* element = v;
    v = build_.graph().new_value(std::string(element->name) + ":steps", {}, node.parent);
    v->producer = &node;
    v->output_index = element->output_index;
    v->type = Type::tensor(element->type.element, sizes(element->type.shape));
    made.emplace_back(element, v);
  }
  return made;
}

void StackedNodes::add_widened(std::unique_ptr<ir::Node> node, const Stacked& how) {
  for (size_t i = 0; i < how.operands.size(); ++i) {
    if (i >= node->inputs.size()) build_.graph().add_input(node.get(), nullptr);
    node->inputs[i] = operand(*node, i, how.operands[i]);
  }
  node->attributes = how.attributes;
  for (const auto& [element, all] : new_outputs(*node, [&](const Shape& s) { return with_iterations(s); }))
    set(element, all);
  build_.adopt(std::move(node));
}

ir::Value* StackedNodes::operand(const ir::Node& node, size_t i, const WidenContext::Operand& how) {
  ir::Value* v = node.inputs[i];
  if (how.constant.defined()) {
    return build_.graph().new_constant(fmt::format("{}:{}", std::string_view(node.name), i), how.constant);
  }
  if (how.repeated) return repeated(v, std::string(node.name));
  if (!how.varies || how.inserted == 0) return how.varies ? whole(v) : v;
  Dims spread(static_cast<size_t>(how.inserted), 1);
  for (const int64_t d : known_dims(v->type.shape)) spread.push_back(d);
  return reshaped(whole(v), iterations_, spread, std::string(node.name));
}

// Stacks a node by merging the iterations with its own leading axis.
void StackedNodes::add_merged(std::unique_ptr<ir::Node> node) {
  const std::string name(node->name);
  for (ir::Value*& v : node->inputs) {
    if (!v || !has(v)) continue;
    const Dims dims = known_dims(v->type.shape);
    v = reshaped(whole(v), iterations_ * Dim(dims[0]), {dims.begin() + 1, dims.end()}, name);
  }
  const auto entries = new_outputs(*node, [&](Shape shape) {
    shape[0] = iterations_ * shape[0];
    return shape;
  });
  build_.adopt(std::move(node));
  for (const auto& [element, all] : entries) {
    set(element, reshaped(all, iterations_, known_dims(element->type.shape), name));
  }
}

// `v` as [first, rest...]. `first`: the first size of `v`, or the quotient of its elements by `rest`.
ir::Value* StackedNodes::reshaped(ir::Value* v, const Dim& first, const Dims& rest, const std::string& name) {
  const bool is_kept = !v->type.shape.empty() && same(first, v->type.shape[0]);
  std::vector<int64_t> sizes{first.is_known() ? first.value() : is_kept ? 0 : -1};
  sizes.insert(sizes.end(), rest.begin(), rest.end());
  Shape shape{first};
  for (const int64_t d : rest) shape.emplace_back(d);
  return build_.call("Reshape", {v, build_.int64s(sizes, name + ":sizes")},
                     Type::tensor(v->type.element, std::move(shape)), name + ":steps");
}

ir::Value* StackedNodes::repeated(ir::Value* v, const std::string& name) {
  std::vector<int64_t> sizes{iterations_.value()};
  for (const int64_t d : known_dims(v->type.shape)) sizes.push_back(d);
  return build_.call("Expand", {v, build_.int64s(sizes, name + ":sizes")},
                     Type::tensor(v->type.element, with_iterations(v->type.shape)), name + ":steps");
}

}  // namespace treadle::opt
