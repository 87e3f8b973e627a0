// Results are those of the trips one by one to the last bit, where kernels treat rows alike: elementwise operations,
// products with weights (no row depends on the others), and what works along axes of its own.
#include "opt/all_trips.h"

#include <algorithm>
#include <array>

#include "op/effects.h"
#include "op/op_def.h"
#include "op/registry.h"
#include "opt/axis_rules.h"
#include "type/make_tensor.h"

namespace treadle::opt {

namespace {

constexpr int64_t kLeastDepth = 8;                       // of a product that pays
constexpr int64_t kMaxWholeElements = int64_t{1} << 24;  // of one value over all trips, where their number is known

size_t rank(const ir::Value* v) {
  return v->type.shape.size();
}

bool is(const ir::Node& node, std::string_view op) {
  return node.op->domain.empty() && node.op->name == op;
}

bool is_reduction(const ir::Node& node) {
  return node.op->domain.empty() && node.op->name.starts_with("Reduce");
}

bool only_first_varies(const ir::Node& node, const Varies& varies) {
  return varies(node.inputs[0]) && std::none_of(node.inputs.begin() + 1, node.inputs.end(), varies);
}

// An axis counted from the front is one further behind; from the back, it is where it was.
int64_t behind_trips(int64_t axis) {
  return axis < 0 ? axis : axis + 1;
}

std::vector<int64_t> behind_trips(std::vector<int64_t> axes) {
  for (int64_t& axis : axes) axis = behind_trips(axis);
  return axes;
}

// --- how operators get one more axis: a condition, and the change to a node whose operands have it

using Condition = bool (*)(const ir::Node&, const Varies&);
using Widen = void (*)(ir::Graph&, ir::Node&);

bool spreads(const ir::Node& node, const Varies&) {
  return !node.attributes.has("broadcast") && node.op->name != "PRelu";
}

bool multiplies(const ir::Node& node, const Varies& varies) {
  const ir::Value *a = node.inputs[0], *b = node.inputs[1];
  return (rank(a) >= 2 && rank(b) >= 2) || (rank(a) == 1 && rank(b) == 2 && !varies(b));
}

bool gemm_of_rows(const ir::Node& node, const Varies& varies) {
  if (!only_first_varies(node, varies) || node.attributes.get_int("transA") != 0) return false;
  const ir::Value* bias = node.inputs.size() > 2 ? node.inputs[2] : nullptr;
  return !bias || rank(bias) < 2 || bias->type.shape[0].is_known(1);
}

bool all_vary(const ir::Node& node, const Varies& varies) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), varies);
}

bool has_constant_axes(const ir::Node& node, const Varies& varies) {
  return only_first_varies(node, varies) && constant_axes(node, 1).has_value();
}

// Nothing of a scalar is reduced, which axes beside that of the trips cannot say: no axes stand for all.
bool reduces_axes(const ir::Node& node, const Varies& varies) {
  return has_constant_axes(node, varies) && rank(node.inputs[0]) > 0;
}

bool has_constant_axis(const ir::Node& node, const Varies& varies) {
  const auto axis = constant_ints(node, 1);
  return only_first_varies(node, varies) && axis && axis->size() == 1;
}

bool slices(const ir::Node& node, const Varies& varies) {
  if (node.inputs.size() < 3 || !only_first_varies(node, varies)) return false;
  return constant_ints(node, 1) && constant_axes(node, 3).has_value();
}

// Along axis 0, whose entries have nothing to do with each other.
bool of_entries(const ir::Node& node, const Varies& varies) {
  return only_first_varies(node, varies) && rank(node.inputs[0]) >= 2 && node.outputs.size() == 1;
}

bool normalizes_entries(const ir::Node& node, const Varies& varies) {
  return of_entries(node, varies) && node.version->since >= 7 && node.attributes.get_int("training_mode") == 0;
}

bool pads_by_constants(const ir::Node& node, const Varies& varies) {
  if (!only_first_varies(node, varies) || node.attributes.has("paddings") || !constant_axes(node, 1, "pads")) {
    return false;
  }
  const bool has_axes = node.inputs.size() > 3 && node.inputs[3];
  return !has_axes || constant_axes(node, 3).has_value();
}

void no_change(ir::Graph&, ir::Node&) {}

void shift_axis(ir::Graph&, ir::Node& node) {
  const AttributeDef* def = node.version->attribute("axis");
  const int64_t otherwise = def && def->has_default() ? def->default_value.as_int() : 0;
  node.attributes.set(ir::Attribute::of("axis", behind_trips(node.attributes.get_int("axis", otherwise))));
}

void shift_axis_input(ir::Graph& graph, ir::Node& node) {
  const ir::Value* old = node.inputs[1];
  Tensor axis = make_tensor(ElementType::kInt64, old->constant.dims());
  *axis.mutable_data<int64_t>() = behind_trips((*constant_ints(node, 1))[0]);
  node.inputs[1] = graph.new_constant(std::string(node.name) + ":axis", std::move(axis));
}

// None given: all of them, unless it says that there is nothing to reduce then.
void shift_axes(ir::Graph& graph, ir::Node& node) {
  std::vector<int64_t> axes = *constant_axes(node, 1);
  if (axes.empty()) {
    if (node.attributes.get_int("noop_with_empty_axes") != 0) return;
    for (size_t i = 1; i < rank(node.inputs[0]); ++i) axes.push_back(static_cast<int64_t>(i));
  } else {
    axes = behind_trips(std::move(axes));
  }
  if (node.version->inputs.size() < 2) {
    node.attributes.set(ir::Attribute::of("axes", std::move(axes)));
    return;
  }
  if (node.inputs.size() < 2) graph.add_input(&node, nullptr);
  node.inputs[1] = graph.new_constant(std::string(node.name) + ":axes", Tensor::of_int64(axes));
}

// As a constant of the type of input `like`: lists that belong together are of one type.
ir::Value* shifted_axes(ir::Graph& graph, const ir::Node& node, size_t like, std::vector<int64_t> axes) {
  Tensor shifted = Tensor::of_int64(behind_trips(std::move(axes)));
  if (node.inputs[like]->type.element == ElementType::kInt32) {
    Tensor narrow = make_tensor(ElementType::kInt32, shifted.dims());
    std::copy_n(shifted.data<int64_t>(), shifted.element_count(), narrow.mutable_data<int32_t>());
    shifted = std::move(narrow);
  }
  return graph.new_constant(std::string(node.name) + ":axes", std::move(shifted));
}

void shift_slice(ir::Graph& graph, ir::Node& node) {
  std::vector<int64_t> axes = *constant_axes(node, 3);
  if (axes.empty()) {
    for (size_t i = 0; i < constant_ints(node, 1)->size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  while (node.inputs.size() < 4) graph.add_input(&node, nullptr);
  node.inputs[3] = shifted_axes(graph, node, 1, std::move(axes));
}

// Attributes before version 11, then an input with as many, and from 18 on perhaps of some axes only.
void shift_pads(ir::Graph& graph, ir::Node& node) {
  if (node.inputs.size() > 3 && node.inputs[3]) {
    node.inputs[3] = shifted_axes(graph, node, 3, *constant_axes(node, 3));
    return;
  }
  std::vector<int64_t> pads = *constant_axes(node, 1, "pads");
  pads.insert(pads.begin() + static_cast<std::ptrdiff_t>(pads.size() / 2), 0);
  pads.insert(pads.begin(), 0);
  if (node.attributes.has("pads")) {
    node.attributes.set(ir::Attribute::of("pads", std::move(pads)));
  } else {
    node.inputs[1] = graph.new_constant(std::string(node.name) + ":pads", Tensor::of_int64(pads));
  }
}

void shift_permutation(ir::Graph&, ir::Node& node) {
  const auto given = node.attributes.get_ints("perm");
  std::vector<int64_t> perm{0};
  const auto own = static_cast<int64_t>(rank(node.inputs[0])) - 1;
  for (int64_t i = 0; i < own; ++i) perm.push_back(given.empty() ? own - i : given[static_cast<size_t>(i)] + 1);
  node.attributes.set(ir::Attribute::of("perm", std::move(perm)));
}

// Without a change to the node, trips and entries become one axis.
constexpr Widen kMerge = nullptr;

struct Rule {
  std::string_view op;
  Condition holds;
  Widen widen;
};

constexpr Rule kRules[] = {
    {"ArgMax", only_first_varies, shift_axis},
    {"ArgMin", only_first_varies, shift_axis},
    {"AveragePool", of_entries, kMerge},
    {"BatchNormalization", normalizes_entries, kMerge},
    {"Clip", only_first_varies, no_change},
    {"Concat", all_vary, shift_axis},
    {"Conv", of_entries, kMerge},
    {"ConvInteger", of_entries, kMerge},
    {"ConvTranspose", of_entries, kMerge},
    {"CumSum", has_constant_axis, shift_axis_input},
    {"DepthToSpace", of_entries, kMerge},
    {"Gemm", gemm_of_rows, kMerge},
    {"GlobalAveragePool", of_entries, kMerge},
    {"GlobalLpPool", of_entries, kMerge},
    {"GlobalMaxPool", of_entries, kMerge},
    {"GroupNormalization", of_entries, kMerge},
    {"Hardmax", only_first_varies, shift_axis},
    {"InstanceNormalization", of_entries, kMerge},
    {"LayerNormalization", only_first_varies, shift_axis},
    {"LogSoftmax", only_first_varies, shift_axis},
    {"LpPool", of_entries, kMerge},
    {"LRN", of_entries, kMerge},
    {"MatMul", multiplies, no_change},
    {"MaxPool", of_entries, kMerge},
    {"Pad", pads_by_constants, shift_pads},
    {"QLinearConv", of_entries, kMerge},
    {"RMSNormalization", only_first_varies, shift_axis},
    {"Slice", slices, shift_slice},
    {"Softmax", only_first_varies, shift_axis},
    {"SpaceToDepth", of_entries, kMerge},
    {"Split", only_first_varies, shift_axis},
    {"Transpose", only_first_varies, shift_permutation},
};

const Rule* rule_of(const ir::Node& node) {
  static constexpr Rule kSpread{"", spreads, no_change};
  static constexpr Rule kReshape{"", only_first_varies, no_change};
  static constexpr Rule kReduce{"", reduces_axes, shift_axes};
  if (node.op->batch == BatchRule::kElementwise) return &kSpread;
  if (node.op->batch == BatchRule::kShapeOnly) return &kReshape;
  if (is_reduction(node)) return &kReduce;
  if (!node.op->domain.empty()) return nullptr;
  const auto* rule =
      std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& r) { return r.op == node.op->name; });
  return rule == std::end(kRules) ? nullptr : rule;
}

bool fits(const ir::Value& v, const Dim& trips) {
  const int64_t count = count_of(v);
  return count > 0 && (!trips.is_known() || trips.value() <= kMaxWholeElements / count);
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

bool runs_for_all_trips(const ir::Node& node, const Varies& varies, const Dim& trips) {
  if (!is_total(node) || !node.inputs[0] || std::none_of(node.inputs.begin(), node.inputs.end(), varies)) return false;
  const Rule* rule = rule_of(node);
  return rule && rule->holds(node, varies) &&
         std::all_of(node.outputs.begin(), node.outputs.end(), [&](auto* v) { return !v || fits(*v, trips); });
}

bool is_product_with_weights(const ir::Node& node, const Varies& varies) {
  const bool convolves = is(node, "Conv");
  if (!convolves && !is(node, "MatMul") && !is(node, "Gemm")) return false;
  const ir::Value *rows = node.inputs[0], *weights = node.inputs[1];
  if (!varies(rows) || varies(weights)) return false;
  if (convolves) return count_of(*weights) / std::max<int64_t>(weights->type.shape[0].value(), 1) >= kLeastDepth;
  return rank(weights) == 2 && rank(rows) > 0 && rows->type.shape[rank(rows) - 1].value() >= kLeastDepth;
}

Shape AllTrips::with_trips(const Shape& element) const {
  Shape whole{trips_};
  for (const Dim& d : element) whole.push_back(d);
  return whole;
}

void AllTrips::add(std::unique_ptr<ir::Node> node) {
  for (ir::Value* v : node->outputs) {
    if (v) v->producer = nullptr;
  }
  if (node->op->batch == BatchRule::kShapeOnly) {
    const ir::Value* element = node->outputs[0];
    set(element, reshaped(whole(node->inputs[0]), trips_, known_dims(element->type.shape), node->name));
    return;
  }
  const Rule& rule = *rule_of(*node);
  if (rule.widen == kMerge) return add_merged(std::move(node));
  align(*node);
  rule.widen(graph_, *node);
  for (ir::Value*& v : node->outputs) {
    if (!v) continue;
    const ir::Value* element = v;
    v = graph_.new_value(std::string(element->name) + ":steps", {}, &region_);
    v->producer = node.get();
    v->output_index = element->output_index;
    v->type = Type::tensor(element->type.element, with_trips(element->type.shape));
    set(element, v);
  }
  insert(std::move(node));
}

// Operands of fewer axes than the result get axes of 1 behind the trips.
void AllTrips::align(ir::Node& node) {
  const bool broadcasts = node.op->batch == BatchRule::kElementwise || node.op->batch == BatchRule::kMatMul;
  const size_t target = node.outputs[0] ? rank(node.outputs[0]) : 0;
  for (ir::Value*& v : node.inputs) {
    if (!v || !has(v)) continue;
    const Dims dims = known_dims(v->type.shape);
    ir::Value* all = whole(v);
    const bool is_row = node.op->batch == BatchRule::kMatMul && dims.size() < 2;
    if (broadcasts && !is_row && dims.size() < target) {
      Dims spread(target - dims.size(), 1);
      for (const int64_t d : dims) spread.push_back(d);
      all = reshaped(all, trips_, spread, node.name);
    }
    v = all;
  }
}

// The entries of all trips are one long row of entries.
void AllTrips::add_merged(std::unique_ptr<ir::Node> node) {
  const ir::Value* element = node->outputs[0];
  const Dims from = known_dims(node->inputs[0]->type.shape), to = known_dims(element->type.shape);
  const std::string name(node->name);
  node->inputs[0] = reshaped(whole(node->inputs[0]), trips_ * Dim(from[0]), {from.begin() + 1, from.end()}, name);
  ir::Value* made = graph_.new_value(std::string(element->name) + ":steps", {}, &region_);
  made->producer = node.get();
  Shape shape{trips_ * Dim(to[0])};
  for (size_t i = 1; i < to.size(); ++i) shape.emplace_back(to[i]);
  made->type = Type::tensor(element->type.element, std::move(shape));
  node->outputs[0] = made;
  insert(std::move(node));
  set(element, reshaped(made, trips_, to, name));
}

void AllTrips::insert(std::unique_ptr<ir::Node> node) {
  node->parent = &region_;
  region_.nodes.insert(region_.nodes.begin() + static_cast<std::ptrdiff_t>(at_ + added_), std::move(node));
  ++added_;
}

ir::Node* AllTrips::new_node(std::string_view op_name, const std::string& name) {
  const OpDef& op = require_op(op_name);
  return graph_.new_node(&region_, &op, &op.newest(), name, at_ + added_++);
}

// `v` as [first, rest...]; `first` is the first size of `v`, or what is left of its elements.
ir::Value* AllTrips::reshaped(ir::Value* v, const Dim& first, const Dims& rest, const std::string& name) {
  ir::Node* node = new_node("Reshape", name + ":steps");
  const bool is_kept = !v->type.shape.empty() && same(first, v->type.shape[0]);
  std::vector<int64_t> sizes{first.is_known() ? first.value() : is_kept ? 0 : -1};
  sizes.insert(sizes.end(), rest.begin(), rest.end());
  graph_.add_input(node, v);
  graph_.add_input(node, graph_.new_constant(name + ":sizes", Tensor::of_int64(sizes)));
  Shape shape{first};
  for (const int64_t d : rest) shape.emplace_back(d);
  return graph_.add_output(node, std::string(v->name) + ":reshaped", Type::tensor(v->type.element, std::move(shape)));
}

AllTrips::Delayed AllTrips::delayed(ir::Value* first, const ir::Value* element, bool reverse, const std::string& name) {
  const Dims dims = known_dims(element->type.shape);
  const ElementType type = element->type.element;
  ir::Value* row = reshaped(first, 1, dims, name);
  ir::Node* concat = new_node("Concat", name + ":line");
  concat->attributes.set(ir::Attribute::of("axis", 0));
  graph_.add_input(concat, reverse ? whole(element) : row);
  graph_.add_input(concat, reverse ? row : whole(element));
  Shape longer = with_trips(element->type.shape);
  longer[0] = trips_ + Dim(1);
  ir::Value* line = graph_.add_output(concat, name + ":line", Type::tensor(type, std::move(longer)));

  ir::Node* slice = new_node("Slice", name + ":before");
  graph_.add_input(slice, line);
  for (const int64_t bound : reverse ? std::array<int64_t, 3>{1, INT64_MAX, 0} : std::array<int64_t, 3>{0, -1, 0}) {
    graph_.add_input(slice, graph_.new_constant(name + ":bound", Tensor::of_int64(std::array{bound})));
  }
  ir::Node* gather = new_node("Gather", name + ":last");
  graph_.add_input(gather, line);
  graph_.add_input(
      gather, graph_.new_constant(name + ":index", Tensor::scalar<int64_t>(ElementType::kInt64, reverse ? 0 : -1)));
  return {graph_.add_output(slice, name + ":before", Type::tensor(type, with_trips(element->type.shape))),
          graph_.add_output(gather, name + ":last", element->type)};
}

ir::Value* AllTrips::repeated(ir::Value* v, const std::string& name) {
  ir::Node* node = new_node("Expand", name + ":steps");
  std::vector<int64_t> sizes{trips_.value()};
  for (const int64_t d : known_dims(v->type.shape)) sizes.push_back(d);
  graph_.add_input(node, v);
  graph_.add_input(node, graph_.new_constant(name + ":sizes", Tensor::of_int64(sizes)));
  return graph_.add_output(node, std::string(v->name) + ":steps",
                           Type::tensor(v->type.element, with_trips(v->type.shape)));
}

}  // namespace treadle::opt
