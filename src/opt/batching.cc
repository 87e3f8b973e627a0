// Of the body of a Scan, the products with weights that depend on the time step's inputs alone: x_t W for every t is
// one product of [T, K] and W. They leave the body, with the nodes in front of them that lead there from scan inputs,
// and those behind them that are elementwise (a bias); what the rest of the body reads of them becomes a scan input.
//
//   Scan(h0, X; h, x: g = x W + b; h' = tanh(g + h R))   becomes   G = X W + b; Scan(h0, G; h, g: h' = tanh(g + h R))
//
// It pays for products only: their weights are read once, not once a step. Everything else would trade a pass over
// registers for one over memory. Only nodes that cannot fail leave, so nothing is lost when there are no steps. A value
// of the body and the whole of its steps differ by one leading dimension; operands of fewer dimensions than the result
// get dimensions of 1 behind it. Results are the same to the last bit: no row of a product depends on the others.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "op/effects.h"
#include "op/op_def.h"
#include "op/registry.h"
#include "op/scan_attributes.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

constexpr int64_t kLeastDepth = 8;                       // of a product that pays
constexpr int64_t kMaxWholeElements = int64_t{1} << 24;  // of one value over all steps, where their number is known

// A value of the body that depends on scan inputs alone.
struct Batched {
  ir::Value* whole = nullptr;  // all its steps; null until its node has left
  bool reverse = false;
};

Shape with_steps(const Dim& steps, const Shape& element) {
  Shape whole{steps};
  for (const Dim& d : element) whole.push_back(d);
  return whole;
}

class Batcher {
 public:
  Batcher(ir::Graph& graph, ir::Region& region, size_t at, Journal* journal)
      : graph_(graph),
        region_(region),
        at_(at),
        scan_(*region.nodes[at]),
        body_(*scan_.region("body")),
        journal_(journal) {}

  // Returns how many nodes were put before the Scan.
  size_t run() {
    auto read = read_scan(scan_, scan_.inputs.size(), body_.outputs.size());
    if (!read.ok()) return 0;
    attributes_ = std::move(read).value();
    for (size_t i = 0; i < attributes_.inputs.size(); ++i) {
      ir::Value* whole = scan_.inputs[attributes_.states + i];
      if (attributes_.inputs[i].axis != 0 || !whole->type.has_shape || whole->type.shape.empty()) return 0;
      batched_[body_.inputs[attributes_.states + i]] = {whole, attributes_.inputs[i].reverse};
      steps_ = whole->type.shape[0];
    }
    find_candidates();
    choose();
    if (leaving_.empty()) return 0;
    move();
    add_scan_inputs();
    return added_;
  }

 private:
  bool is_invariant(const ir::Value* v) const { return v->is_constant() || v->owner != &body_; }
  bool is_batched(const ir::Value* v) const { return v && batched_.contains(v); }

  // --- which nodes could leave

  void find_candidates() {
    for (const auto& node : body_.nodes) {
      if (!can_leave(*node)) continue;
      candidates_.insert(node.get());
      const auto first = std::find_if(node->inputs.begin(), node->inputs.end(), [&](auto* v) { return is_batched(v); });
      batched_[node->outputs[0]] = {nullptr, batched_.at(*first).reverse};
    }
  }

  bool can_leave(const ir::Node& node) const {
    if (node.outputs.size() != 1 || !node.outputs[0] || !node.regions.empty() || node.inputs.empty()) return false;
    if (!node.inputs[0] || node.op->effects == Effects::kRandom || can_fail(node)) return false;
    bool any = false, reverse = false;
    for (const ir::Value* v : node.inputs) {
      if (!v) continue;
      if (!v->type.is_concrete()) return false;
      if (is_invariant(v)) continue;
      const auto it = batched_.find(v);
      if (it == batched_.end() || (any && it->second.reverse != reverse)) return false;
      any = true;
      reverse = it->second.reverse;
    }
    return any && node.outputs[0]->type.is_concrete() && fits(*node.outputs[0]) && has_rule(node);
  }

  bool fits(const ir::Value& v) const {
    const int64_t count = element_count_unchecked(known_dims(v.type.shape));
    return count > 0 && (!steps_.is_known() || steps_.value() <= kMaxWholeElements / count);
  }

  bool has_rule(const ir::Node& node) const {
    if (node.attributes.has("broadcast")) return false;
    if (is_product(node)) return has_product_rule(node);
    if (node.op->batch == BatchRule::kShapeOnly) return is_batched(node.inputs[0]);
    return node.op->batch == BatchRule::kElementwise && node.op->name != "PRelu";
  }

  static bool is_product(const ir::Node& node) {
    return node.op->domain.empty() && (node.op->name == "MatMul" || node.op->name == "Gemm");
  }

  // Steps on the left, weights on the right.
  bool has_product_rule(const ir::Node& node) const {
    if (!is_batched(node.inputs[0]) || !is_invariant(node.inputs[1])) return false;
    if (node.inputs[1]->type.shape.size() != 2 || node.inputs[0]->type.shape.empty()) return false;
    if (node.op->name == "MatMul") return true;
    if (node.attributes.get_int("transA") != 0) return false;
    const ir::Value* bias = node.inputs.size() > 2 ? node.inputs[2] : nullptr;
    if (!bias) return true;
    const Shape& shape = bias->type.shape;
    return is_invariant(bias) && (shape.size() < 2 || shape[0].is_known(1));
  }

  // --- which of them do

  void choose() {
    for (const auto& node : body_.nodes) {
      if (!candidates_.contains(node.get())) continue;
      if (is_product(*node)) {
        const int64_t depth = node->inputs[0]->type.shape[node->inputs[0]->type.shape.size() - 1].value();
        if (depth >= kLeastDepth) leave_with_producers(*node);
      } else if (follows(*node)) {
        leaving_.insert(node.get());
      }
    }
  }

  void leave_with_producers(const ir::Node& node) {
    if (!leaving_.insert(&node).second) return;
    for (const ir::Value* v : node.inputs) {
      if (v && v->producer && candidates_.contains(v->producer)) leave_with_producers(*v->producer);
    }
  }

  // Behind nodes that leave, and no larger than what it reads.
  bool follows(const ir::Node& node) const {
    int64_t largest = 0;
    bool behind = false;
    for (const ir::Value* v : node.inputs) {
      if (!is_batched(v)) continue;
      const bool leaves = v->producer && leaving_.contains(v->producer);
      if (v->producer && !leaves) return false;
      behind |= leaves;
      largest = std::max(largest, element_count_unchecked(known_dims(v->type.shape)));
    }
    return behind && element_count_unchecked(known_dims(node.outputs[0]->type.shape)) <= largest;
  }

  // --- moving

  void move() {
    std::vector<std::unique_ptr<ir::Node>> staying;
    for (auto& node : body_.nodes) {
      if (leaving_.contains(node.get())) {
        move(std::move(node));
      } else {
        staying.push_back(std::move(node));
      }
    }
    body_.nodes = std::move(staying);
  }

  void move(std::unique_ptr<ir::Node> node) {
    note(journal_, Change::kBatched, body_, *node);
    ir::Value* element = node->outputs[0];
    element->producer = nullptr;
    Batched& result = batched_.at(element);
    if (node->op->batch == BatchRule::kShapeOnly) {
      result.whole = reshaped(whole_of(node->inputs[0]), 0, known_dims(element->type.shape), node->name);
      return;
    }
    const bool gemm = node->op->name == "Gemm" && node->op->domain.empty();
    const size_t rank = element->type.shape.size();
    for (ir::Value*& v : node->inputs) {
      if (!is_batched(v)) continue;
      const Dims dims = known_dims(v->type.shape);
      ir::Value* whole = whole_of(v);
      if (gemm) {
        whole = reshaped(whole, -1, {dims[1]}, node->name);
      } else if (!is_product(*node) && dims.size() < rank) {
        Dims spread(rank - dims.size(), 1);
        for (const int64_t d : dims) spread.push_back(d);
        whole = reshaped(whole, 0, spread, node->name);
      }
      v = whole;
    }
    ir::Value* whole = graph_.new_value(element->name + ":steps", {}, &region_);
    whole->producer = node.get();
    whole->type = Type::tensor(element->type.element, with_steps(steps_, element->type.shape));
    node->outputs[0] = whole;
    node->parent = &region_;
    const std::string name = node->name;
    insert(std::move(node));
    if (gemm) {
      const Dims dims = known_dims(element->type.shape);
      whole->type.shape = {steps_ * Dim(dims[0]), Dim(dims[1])};
      whole = reshaped(whole, -1, dims, name);
    }
    result.whole = whole;
  }

  ir::Value* whole_of(ir::Value* v) const { return batched_.at(v).whole; }

  void insert(std::unique_ptr<ir::Node> node) {
    region_.nodes.insert(region_.nodes.begin() + static_cast<std::ptrdiff_t>(at_ + added_), std::move(node));
    ++added_;
  }

  // `v` as [steps or what is left of it (`first` 0 or -1), dims...].
  ir::Value* reshaped(ir::Value* v, int64_t first, const Dims& dims, const std::string& name) {
    const OpDef& op = require_op("Reshape");
    ir::Node* node = graph_.new_node(&region_, &op, &op.newest(), name + ":steps", at_ + added_);
    for (const AttributeDef& a : op.newest().attributes) {
      if (a.has_default()) node->attributes.set(a.default_value);
    }
    std::vector<int64_t> sizes{first};
    sizes.insert(sizes.end(), dims.begin(), dims.end());
    graph_.add_input(node, v);
    graph_.add_input(node, graph_.new_constant(name + ":sizes", Tensor::of_int64(sizes)));
    ++added_;
    Shape shape;
    const bool flattened = first < 0 && dims.size() == 1;
    shape.push_back(flattened ? v->type.shape[0] * v->type.shape[1] : steps_);
    for (const int64_t d : dims) shape.emplace_back(d);
    return graph_.add_output(node, v->name + ":reshaped", Type::tensor(v->type.element, std::move(shape)));
  }

  // --- what the body still reads

  void add_scan_inputs() {
    std::unordered_set<const ir::Value*> read;
    for (const ir::Value* v : body_.outputs) read.insert(v);
    ir::for_each_node(body_, [&](const ir::Node& node) {
      read.insert(node.inputs.begin(), node.inputs.end());
      for (const auto& inner : node.regions) read.insert(inner->outputs.begin(), inner->outputs.end());
    });
    std::vector<int64_t> directions;
    for (const ScanAxis& axis : attributes_.inputs) directions.push_back(axis.reverse ? 1 : 0);
    for (ir::Value* element : moved_values()) {
      if (!read.contains(element)) continue;
      const Batched& batched = batched_.at(element);
      graph_.add_input(&scan_, batched.whole);
      body_.inputs.push_back(element);
      directions.push_back(batched.reverse ? 1 : 0);
    }
    drop_unread(read, directions);
    scan_.attributes.set(ir::Attribute::of("num_scan_inputs", static_cast<int64_t>(directions.size())));
    scan_.attributes.set(ir::Attribute::of("scan_input_directions", std::move(directions)));
    scan_.attributes.erase("scan_input_axes");
  }

  // Results of nodes that left, in the order of the body.
  std::vector<ir::Value*> moved_values() const {
    std::vector<ir::Value*> values;
    for (const auto& [v, batched] : batched_) {
      const bool is_input = std::find(body_.inputs.begin(), body_.inputs.end(), v) != body_.inputs.end();
      if (batched.whole && !is_input) values.push_back(const_cast<ir::Value*>(v));
    }
    std::sort(values.begin(), values.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
    return values;
  }

  // Scan inputs that nobody reads any more go, all but one: a Scan takes its length from them.
  void drop_unread(const std::unordered_set<const ir::Value*>& read, std::vector<int64_t>& directions) {
    for (size_t i = directions.size(); i-- > 0 && directions.size() > 1;) {
      const size_t at = attributes_.states + i;
      if (read.contains(body_.inputs[at])) continue;
      body_.inputs.erase(body_.inputs.begin() + static_cast<std::ptrdiff_t>(at));
      scan_.inputs.erase(at);
      directions.erase(directions.begin() + static_cast<std::ptrdiff_t>(i));
    }
    scan_.input_count = static_cast<uint32_t>(scan_.inputs.size());
  }

  ir::Graph& graph_;
  ir::Region& region_;
  const size_t at_;
  ir::Node& scan_;
  ir::Region& body_;
  Journal* journal_;
  ScanAttributes attributes_;
  Dim steps_ = Dim::unknown();
  std::unordered_map<const ir::Value*, Batched> batched_;
  std::unordered_set<const ir::Node*> candidates_, leaving_;
  size_t added_ = 0;
};

void walk(ir::Graph& graph, ir::Region& region, Journal* journal) {
  for (size_t at = 0; at < region.nodes.size(); ++at) {
    for (auto& body : region.nodes[at]->regions) walk(graph, *body, journal);
    if (region.nodes[at]->op->control == Control::kScan) at += Batcher(graph, region, at, journal).run();
  }
}

}  // namespace

void batch_products(ir::Graph& graph, Journal* journal) {
  walk(graph, graph.top(), journal);
}

}  // namespace treadle::opt
