// Transposes that undo each other, with nodes between them that work in any order of axes:
//
//   Transpose, Relu, Add of a constant, Transpose   becomes   Relu, Add of the constant transposed
//
// A Transpose is pushed down as far as nodes allow. The values that it reaches, and all Transposes by the same axes
// that make other operands of these nodes, are a cluster. Tensors in the cluster keep the axes that they had before the
// Transpose. A value that leaves the cluster through the inverse Transpose needs no node. A value that leaves it
// otherwise gets a Transpose, and so does a value that enters it without one. A cluster is rewritten if that leaves
// fewer Transposes.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/stop.h"
#include "op/axes.h"
#include "op/node.h"
#include "op/registry.h"
#include "opt/bytes.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/standard_form.h"
#include "opt/standard_nodes.h"
#include "reference/folding.h"

namespace treadle::opt {

namespace {

using Axes = std::vector<int64_t>;

Axes axes_of(const ir::Node& transpose) {
  const auto given = transpose.attributes.get_ints("perm");
  Axes axes(given.begin(), given.end());
  const int64_t rank = transpose.inputs[0]->type.rank();
  for (int64_t i = given.empty() ? rank : 0; i-- > 0;) axes.push_back(i);
  return axes;
}

Axes inverse(const Axes& axes) {
  Axes back(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) back[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
  return back;
}

bool is_by(const ir::Node* node, const Axes& axes) {
  return is(node, "Transpose") && node->inputs[0]->type.has_shape && axes_of(*node) == axes;
}

// --- how nodes use axes

// How an operator names axes of its first operand. Its results have all these axes, except axes that it removes.
struct AxisRule {
  std::string_view op;
  enum class Kind : uint8_t { kAxis, kGathered, kReduced, kSliced, kPadded } kind;
  int since = 1;              // earlier versions mean something else
  bool all_operands = false;  // all operands have these axes
};
constexpr AxisRule kAxisRules[] = {
    {"Softmax", AxisRule::Kind::kAxis, 13},        {"LogSoftmax", AxisRule::Kind::kAxis, 13},
    {"Hardmax", AxisRule::Kind::kAxis, 13},        {"Concat", AxisRule::Kind::kAxis, 4, true},
    {"Gather", AxisRule::Kind::kGathered},         {"Split", AxisRule::Kind::kAxis, 2},
    {"Slice", AxisRule::Kind::kSliced, 10},        {"Pad", AxisRule::Kind::kPadded, 11},
    {"ArgMax", AxisRule::Kind::kReduced},          {"ArgMin", AxisRule::Kind::kReduced},
    {"ReduceL1", AxisRule::Kind::kReduced},        {"ReduceL2", AxisRule::Kind::kReduced},
    {"ReduceLogSum", AxisRule::Kind::kReduced},    {"ReduceMax", AxisRule::Kind::kReduced},
    {"ReduceLogSumExp", AxisRule::Kind::kReduced}, {"ReduceMean", AxisRule::Kind::kReduced},
    {"ReduceMin", AxisRule::Kind::kReduced},       {"ReduceProd", AxisRule::Kind::kReduced},
    {"ReduceSum", AxisRule::Kind::kReduced},       {"ReduceSumSquare", AxisRule::Kind::kReduced},
};

const AxisRule* rule_of(const ir::Node& node) {
  for (const AxisRule& rule : kAxisRules) {
    if (is(node, rule.op) && node.version->since >= rule.since) return &rule;
  }
  return nullptr;
}

bool has_axis_attribute(const ir::Node& node) {
  return node.attributes.has("axis");
}

// The axes that the node names, counted from the front; nullopt if they are unknown.
std::optional<Axes> named_axes(const ir::Node& node, const AxisRule& rule, int64_t rank) {
  std::optional<Axes> axes;
  switch (rule.kind) {
    case AxisRule::Kind::kAxis:
    case AxisRule::Kind::kGathered:
      axes = has_axis_attribute(node) ? std::optional(Axes{node.attributes.get_int("axis")}) : std::nullopt;
      break;
    case AxisRule::Kind::kReduced:
      axes = has_axis_attribute(node) ? std::optional(Axes{node.attributes.get_int("axis")}) : constant_axes(node, 1);
      if (axes && axes->empty()) axes.reset();  // an empty list means all axes, or none
      break;
    case AxisRule::Kind::kSliced:
      axes = input(node, 3) ? constant_ints(node, 3) : std::nullopt;
      break;
    case AxisRule::Kind::kPadded:
      axes = constant_ints(node, 1) && !input(node, 3) ? std::optional(Axes{}) : std::nullopt;
      break;
  }
  for (size_t i = 0; axes && i < axes->size(); ++i) (*axes)[i] = from_front((*axes)[i], rank);
  return axes;
}

bool takes_axes_away(const ir::Node& node, const AxisRule& rule) {
  if (rule.kind == AxisRule::Kind::kGathered) return node.inputs[1]->type.rank() == 0;
  return rule.kind == AxisRule::Kind::kReduced && node.attributes.get_int("keepdims", 1) == 0;
}

// Whether the remaining axes are in the order that they had before the Transpose.
bool leaves_order(const Axes& axes, const Axes& taken) {
  int64_t last = -1;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (std::find(taken.begin(), taken.end(), static_cast<int64_t>(i)) != taken.end()) continue;
    if (axes[i] < last) return false;
    last = axes[i];
  }
  return true;
}

ir::Value* int64s(ir::Graph& graph, const ir::Node& node, const Axes& values) {
  return graph.new_constant(std::string(node.name) + ":axes", Tensor::of_int64(values));
}

// Rewrites the node to name the axes that its operand had before the Transpose.
void rename_axes(ir::Graph& graph, ir::Node& node, const AxisRule& rule, const Axes& axes) {
  if (rule.kind == AxisRule::Kind::kPadded) {
    const Axes given = *constant_ints(node, 1);
    Axes pads(given.size());
    for (size_t i = 0; i < given.size(); ++i) {
      const size_t side = i / axes.size() * axes.size();
      pads[side + static_cast<size_t>(axes[i % axes.size()])] = given[i];
    }
    node.inputs[1] = int64s(graph, node, pads);
    return;
  }
  Axes named = *named_axes(node, rule, static_cast<int64_t>(axes.size()));
  for (int64_t& axis : named) axis = axes[static_cast<size_t>(axis)];
  if (has_axis_attribute(node)) {
    node.attributes.set(ir::Attribute::of("axis", named.front()));
  } else if (node.attributes.has("axes")) {
    node.attributes.set(ir::Attribute::of("axes", std::move(named)));
  } else {
    node.inputs[rule.kind == AxisRule::Kind::kSliced ? 3 : 1] = int64s(graph, node, named);
  }
}

// --- clusters

using Readers = std::unordered_map<const ir::Value*, std::vector<ir::Node*>>;

class Cluster {
 public:
  Cluster(ir::Graph& graph, ir::Region& region, const Readers& readers, const ValueSet& results, const ir::Node& first)
      : graph_(graph), region_(region), readers_(readers), results_(results), axes_(axes_of(first)) {
    back_ = inverse(axes_);
    add_value(first.outputs[0]);
    grow();
  }

  // The number of Transposes that a rewrite would remove, minus the number that it would add.
  int64_t gain() const {
    int64_t gain = static_cast<int64_t>(exits_.size()) - static_cast<int64_t>(leaks_.size() + inlets_.size());
    for (const ir::Value* v : cluster_values_) gain += is_by(v->producer, axes_) ? 1 : 0;
    return gain;
  }

  void rewrite(std::unordered_map<ir::Value*, ir::Value*>& replaced) {
    for (ir::Value* v : cluster_values_) before_[v] = untransposed(v);
    for (ir::Node* node : inside_) add_operands(*node);
    for (ir::Node* node : exits_) replaced[node->outputs[0]] = before_.at(node->inputs[0]);
    put_transposes();
  }

 private:
  void add_value(ir::Value* v) {
    if (!seen_.insert(v).second) return;
    cluster_values_.push_back(v);
  }

  void grow() {
    for (size_t i = 0; i < cluster_values_.size() && !stop_requested(); ++i) {
      ir::Value* const v = cluster_values_[i];
      bool leaks = results_.contains(v);
      const auto found = readers_.find(v);
      for (ir::Node* reader : found == readers_.end() ? std::vector<ir::Node*>() : found->second) {
        if (reader->parent != &region_) {
          leaks = true;
        } else if (is_by(reader, back_)) {
          add(exits_, reader);
        } else if (members_.contains(reader) || takes_in(*reader)) {
          add(inside_, reader);
        } else {
          leaks = true;
        }
      }
      if (leaks) leaks_.push_back(v);
    }
  }

  void add(std::vector<ir::Node*>& nodes, ir::Node* node) {
    if (members_.insert(node).second) nodes.push_back(node);
  }

  bool has_rank(const ir::Value* v) const { return v->type.rank() == static_cast<int64_t>(axes_.size()); }

  // The kind of operand `i` if `node` joins the cluster.
  enum class Operand : uint8_t { kNone, kTransposed, kConstant, kInlet, kUnfit };
  Operand operand(const ir::Node& node, size_t i, const AxisRule* rule) const {
    const ir::Value* const v = node.inputs[i];
    if (!v || (rule && i > 0 && !rule->all_operands)) return Operand::kNone;
    if (seen_.contains(v) || is_by(v->producer, axes_)) return Operand::kTransposed;
    if (v->is_constant()) {
      if (v->constant.element_count() == 1 && !rule) return Operand::kNone;
      return v->constant.rank() <= static_cast<int64_t>(axes_.size()) && !is_string(v->constant.type())
                 ? Operand::kConstant
                 : Operand::kUnfit;
    }
    if (!rule && v->type.has_shape && v->type.shape.empty()) return Operand::kNone;
    return has_rank(v) ? Operand::kInlet : Operand::kUnfit;
  }

  // Adds the node's operands and results to the cluster if the node can work on other axes.
  bool takes_in(ir::Node& node) {
    const AxisRule* const rule = rule_of(node);
    const bool is_plain =
        node.op->elementwise && node.op->domain.empty() && !is(node, "DequantizeLinear") && !is(node, "QuantizeLinear");
    if ((!rule && !is_plain) || !node.regions.empty()) return false;
    const auto named = rule ? named_axes(node, *rule, static_cast<int64_t>(axes_.size())) : std::nullopt;
    if (rule && !named) return false;
    const bool shrinks = rule && takes_axes_away(node, *rule);
    if (shrinks && !leaves_order(axes_, *named)) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (operand(node, i, rule) == Operand::kUnfit) return false;
    }
    for (const ir::Value* v : node.outputs) {
      if (v && !shrinks && !has_rank(v)) return false;
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Operand kind = operand(node, i, rule);
      if (kind == Operand::kTransposed) add_value(node.inputs[i]);
      if (kind == Operand::kInlet && inlets_seen_.insert(node.inputs[i]).second) inlets_.push_back(node.inputs[i]);
    }
    for (ir::Value* v : node.outputs) {
      if (v && !shrinks) add_value(v);
    }
    return true;
  }

  Type type_before(const Type& type) const {
    Type before = type;
    for (size_t i = 0; i < axes_.size(); ++i) before.shape[static_cast<size_t>(axes_[i])] = type.shape[i];
    return before;
  }

  // `v` with the axes that it had before the Transpose. A leaking value also keeps its own axes for readers outside of
  // the cluster.
  ir::Value* untransposed(ir::Value* v) {
    if (is_by(v->producer, axes_)) return v->producer->inputs[0];
    const Type type = type_before(v->type);
    if (std::find(leaks_.begin(), leaks_.end(), v) == leaks_.end()) {
      v->type = type;
      return v;
    }
    ir::Value* const made = graph_.new_value(std::string(v->name) + ":untransposed", type, v->owner);
    made->producer = v->producer;
    made->output_index = v->output_index;
    v->producer->outputs[v->output_index] = made;
    behind_[made->producer].push_back(transpose(made, v, axes_));
    return made;
  }

  std::unique_ptr<ir::Node> transpose(ir::Value* from, ir::Value* to, const Axes& axes) {
    const OpDef& op = require_op("Transpose");
    ir::Node* const made = graph_.new_node(&region_, &op, standard_version(graph_, "Transpose"), to->name);
    std::unique_ptr<ir::Node> node = std::move(region_.nodes.back());
    region_.nodes.pop_back();
    made->attributes.set(ir::Attribute::of("perm", axes));
    graph_.add_input(made, from);
    made->outputs.push_back(to);
    made->output_count = 1;
    to->producer = made;
    to->output_index = 0;
    return node;
  }

  void add_operands(ir::Node& node) {
    const AxisRule* const rule = rule_of(node);
    std::vector<Operand> kinds;
    for (size_t i = 0; i < node.inputs.size(); ++i) kinds.push_back(operand(node, i, rule));
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      ir::Value*& v = node.inputs[i];
      if (kinds[i] == Operand::kTransposed) v = before_.at(v);
      if (kinds[i] == Operand::kConstant) v = transposed_constant(v);
      if (kinds[i] == Operand::kInlet) v = transposed_inlet(v);
    }
    if (rule) rename_axes(graph_, node, *rule, axes_);
  }

  ir::Value* transposed_constant(ir::Value* v) {
    Dims dims(axes_.size() - v->constant.dims().size(), 1);
    for (const int64_t d : v->constant.dims()) dims.push_back(d);
    reference::Folding folding(reference::FoldLimits::none());
    ir::Graph scratch;
    const OpDef& op = require_op("Transpose");
    ir::Node* const node = scratch.new_node(&scratch.top(), &op, &op.newest(), "transpose");
    node->attributes.set(ir::Attribute::of("perm", back_));
    scratch.add_input(node, scratch.new_constant("x", v->constant.reshaped(dims)));
    scratch.add_output(node, "y");
    const std::vector<AnyValue> inputs{AnyValue(node->inputs[0]->constant)};
    const auto results = folding.evaluate(*node, inputs);
    return graph_.new_constant(v->name, (*results)[0].tensor());
  }

  ir::Value* transposed_inlet(ir::Value* v) {
    ir::Value*& made = transposed_inlets_[v];
    if (made) return made;
    made = graph_.new_value(std::string(v->name) + ":transposed", type_before(v->type), &region_);
    const bool is_own = v->producer && v->producer->parent == &region_;
    behind_[is_own ? v->producer : nullptr].push_back(transpose(v, made, back_));
    return made;
  }

  void put_transposes() {
    std::vector<std::unique_ptr<ir::Node>> nodes = std::move(behind_[nullptr]);
    for (auto& node : region_.nodes) {
      const ir::Node* const at = node.get();
      nodes.push_back(std::move(node));
      for (auto& made : behind_[at]) nodes.push_back(std::move(made));
    }
    region_.nodes = std::move(nodes);
  }

  ir::Graph& graph_;
  ir::Region& region_;
  const Readers& readers_;
  const ValueSet& results_;
  const Axes axes_;
  Axes back_;
  std::vector<ir::Value*> cluster_values_, leaks_, inlets_;
  std::unordered_set<const ir::Value*> seen_, inlets_seen_;
  std::vector<ir::Node*> inside_, exits_;
  std::unordered_set<const ir::Node*> members_;
  std::unordered_map<ir::Value*, ir::Value*> before_, transposed_inlets_;
  // New nodes behind a node of the region; null: in front of all nodes.
  std::unordered_map<const ir::Node*, std::vector<std::unique_ptr<ir::Node>>> behind_;
};

Readers readers_of(const ir::Region& top) {
  Readers readers;
  ir::for_each_node(const_cast<ir::Region&>(top), [&](ir::Node& node) {
    for (const ir::Value* v : node.inputs) {
      if (v && !v->is_constant()) readers[v].push_back(&node);
    }
  });
  return readers;
}

ValueSet results_of_regions(const ir::Region& top) {
  ValueSet results;
  for_each_use(top, [&](const ir::Value* v, const ir::Node* reader) {
    if (v && !reader) results.insert(v);
  });
  return results;
}

bool cancel_one(ir::Graph& graph, ir::Region& region) {
  for (const auto& node : region.nodes) {
    for (const auto& body : node->regions) {
      if (cancel_one(graph, *body)) return true;
    }
  }
  std::optional<Readers> readers;
  std::optional<ValueSet> results;
  for (const auto& node : region.nodes) {
    if (!is(*node, "Transpose") || !node->inputs[0]->type.has_shape) continue;
    if (stop_requested()) return false;
    if (!readers) readers = readers_of(graph.top());
    if (!results) results = results_of_regions(graph.top());
    Cluster cluster(graph, region, *readers, *results, *node);
    if (cluster.gain() < 1) continue;
    std::unordered_map<ir::Value*, ir::Value*> replaced;
    cluster.rewrite(replaced);
    ir::replace_uses(graph, replaced);
    return true;
  }
  return false;
}

}  // namespace

bool cancel_transposes(ir::Graph& graph) {
  bool changed = false;
  constexpr int kMostClusters = 100;
  for (int i = 0; i < kMostClusters && cancel_one(graph, graph.top()); ++i) {
    remove_dead_nodes(graph);
    changed = true;
  }
  return changed;
}

}  // namespace treadle::opt
