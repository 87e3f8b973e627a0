// Moves nodes of a loop body that only scan outputs need behind the loop, where they run for all iterations at once:
//
//   Loop(h: h' = f(h); y = softmax(h' W))   becomes   H = Loop(h: h' = f(h); h'); Y = softmax(H W)
//
// This pays for products with weights, which are then read once; for reductions and similar nodes, whose kernels are
// called once instead of once an iteration; and for functions (exp, tanh, ...) of a few elements, which then fill whole
// vectors. Readers of such nodes move with them. The nodes that lead to them move too if the loop then returns no more
// elements than before.
//
// An iteration that does not happen has no row, so no moved node runs for it, however the loop ends. Only nodes that
// cannot fail move, so errors stay errors of their iteration.
#include <algorithm>
#include <unordered_set>

#include "op/loop_view.h"
#include "op/op_def.h"
#include "op/work.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/stacked.h"

namespace treadle::opt {

namespace {

// Elements of a function that may be too few to fill its vectors in the loop. Tanh of up to 8 elements gains (AVX-512),
// of more it does not (measured).
constexpr int64_t kFewElements = 32;
// Elements that the loop may return for each element of a product. Measured with products of a row of 64: at 8 an
// iteration takes a third of the time, and so it does at 16; at 32 it takes half in the interpreter, twice in native
// code.
constexpr int64_t kWeightOfProducts = 8;
// Fewer iterations save at most 0.2 microseconds a run (measured: a product of 64 x 64 and a Softmax).
constexpr int64_t kLeastIterations = 4;

bool is_function(const ir::Node& node) {
  return price_of(node) == kernels::Price::kFunction;
}

// Whether the node has a kernel of its own that needs whole rows.
bool is_of_rows(const ir::Node& node) {
  const OpDef& op = *node.op;
  return !op.elementwise && op.alias_input < 0 && !op.moves_elements && op.product != Product::kMatrices;
}

class Sinker {
 public:
  Sinker(ir::Graph& graph, ir::Region& region, size_t at, Remarks* remarks,
         std::unordered_map<ir::Value*, ir::Value*>& replaced)
      : graph_(graph),
        region_(region),
        at_(at),
        loop_(*region.nodes[at]),
        body_(loop_.body()),
        remarks_(remarks),
        replaced_(replaced) {}

  // Returns the number of nodes put behind the loop.
  size_t run() {
    if (!read_loop()) return 0;
    find_users();
    choose();
    if (sunk_.empty()) return 0;
    StackedNodes behind(graph_, region_, at_ + 1, iterations_);
    for (const auto& [element, whole] : scanned_) behind.set(element, whole);
    return_values(behind);
    move(behind);
    return behind.added();
  }

 private:
  // Reads the scan outputs; false if they are not all stacked in the same way.
  bool read_loop() {
    if (loop_.masked()) return false;
    bool any = false;
    for (size_t i = 0; i < loop_.scan_outputs(); ++i) {
      const LoopView::ScanOutput out = loop_.scan_output(i);
      if (!out.row) continue;
      if (out.axis != 0 || (any && out.reverse != reverse_)) return false;
      reverse_ = out.reverse;
      any = true;
    }
    for (size_t i = 0; i < loop_.scan_inputs(); ++i) {
      const LoopView::ScanInput in = loop_.scan_input(i);
      if (in.axis == 0 && in.reverse == reverse_) scanned_[in.element] = in.whole;
    }
    for (size_t i = 0; i < loop_.scan_outputs(); ++i) {
      const LoopView::ScanOutput out = loop_.scan_output(i);
      if (!out.wanted()) continue;
      if (!out.whole->type.has_shape || out.whole->type.shape.empty()) return false;
      iterations_ = out.whole->type.shape[0];
      // Without iterations, rows have the sizes that the model states, not those of the plan.
      if (!iterations_.is_known() && !loop_.row_is_as_in_model(i)) return false;
      rows_.insert(out.row);
    }
    return !rows_.empty() && !(iterations_.is_known() && iterations_.value() < kLeastIterations);
  }

  Varies varies() const {
    return [this](const ir::Value* v) { return !is_invariant(v, body_); };
  }

  // --- which nodes move

  // Finds the readers of each value; null stands for the loop itself.
  void find_users() {
    for (const auto& node : body_.nodes) {
      for (const ir::Value* v : node->inputs) users_[v].push_back(node.get());
      for (const auto& inner : node->regions) {
        for (const ir::Value* v : ir::captures(*inner)) users_[v].push_back(node.get());
      }
    }
    users_[loop_.condition_after()].push_back(nullptr);
    for (size_t i = 0; i < loop_.states(); ++i) users_[loop_.state(i).after].push_back(nullptr);
  }

  // Back to front: all readers of a node that moves have moved before.
  void choose() {
    std::unordered_set<const ir::Node*> movable;
    for (size_t i = body_.nodes.size(); i-- > 0;) {
      const ir::Node& node = *body_.nodes[i];
      if (only_read_by(node, movable) && runs_stacked(node, varies(), iterations_)) movable.insert(&node);
    }
    for (const auto& node : body_.nodes) {
      if (movable.contains(node.get()) && pays(*node)) take_with_readers(*node);
    }
    for (size_t i = body_.nodes.size(); i-- > 0;) {
      const ir::Node& node = *body_.nodes[i];
      if (movable.contains(&node) && !sunk_.contains(&node) && is_cheaper_behind(node)) sunk_.insert(&node);
    }
  }

  bool only_read_by(const ir::Node& node, const std::unordered_set<const ir::Node*>& nodes) const {
    bool any = false;
    for (const ir::Value* v : node.outputs) {
      if (!v) continue;
      any |= rows_.contains(v);
      const auto it = users_.find(v);
      if (it == users_.end()) continue;
      for (const ir::Node* user : it->second) {
        if (!nodes.contains(user)) return false;
        any = true;
      }
    }
    return any;
  }

  bool pays(const ir::Node& node) const {
    const Traffic traffic = traffic_of(node);
    if (is_product_with_weights(node, varies())) return traffic.more <= kWeightOfProducts * traffic.less;
    if (iterations_.is_unknown() || traffic.more > traffic.less) return false;
    return is_of_rows(node) || (is_function(node) && count_of(*node.outputs[0]) <= kFewElements);
  }

  void take_with_readers(const ir::Node& node) {
    if (!sunk_.insert(&node).second) return;
    for (const ir::Value* v : node.outputs) {
      const auto it = users_.find(v);
      if (!v || it == users_.end()) continue;
      for (const ir::Node* user : it->second) take_with_readers(*user);
    }
  }

  // Whether all readers of the node have moved, and the loop returns no more elements for its inputs than for its
  // results.
  bool is_cheaper_behind(const ir::Node& node) const {
    const auto read_behind = [&](const ir::Value* v) { return v && is_read_behind(v); };
    if (!only_read_by(node, sunk_) || std::none_of(node.outputs.begin(), node.outputs.end(), read_behind)) return false;
    const Traffic traffic = traffic_of(node);
    return traffic.more <= traffic.less;
  }

  // `more`: elements that an iteration must return for `node` to run behind the loop; `less`: elements that it need not
  // return then.
  struct Traffic {
    int64_t more = 0, less = 0;
  };

  Traffic traffic_of(const ir::Node& node) const {
    Traffic traffic;
    for (const ir::Value* v : node.inputs) {
      if (!is_invariant(v, body_) && !is_returned(v)) traffic.more += count_of(*v);
    }
    for (const ir::Value* v : node.outputs) {
      if (v) traffic.less += count_of(*v);
    }
    return traffic;
  }

  bool is_returned(const ir::Value* v) const { return scanned_.contains(v) || rows_.contains(v) || is_read_behind(v); }

  bool is_read_behind(const ir::Value* v) const {
    const auto it = users_.find(v);
    return it != users_.end() && std::any_of(it->second.begin(), it->second.end(),
                                             [&](const ir::Node* user) { return user && sunk_.contains(user); });
  }

  // --- moving

  // Passes to the nodes behind the loop the values that they read in each iteration: scan inputs unchanged, other
  // values as scan outputs.
  void return_values(StackedNodes& behind) {
    for (size_t i = 0; i < loop_.scan_outputs(); ++i) {
      const LoopView::ScanOutput out = loop_.scan_output(i);
      if (!out.wanted() || behind.has(out.row)) continue;
      if (!out.row->producer || !sunk_.contains(out.row->producer)) behind.set(out.row, out.whole);
    }
    std::unordered_set<const ir::Value*> made;
    for (const auto& node : body_.nodes) {
      if (!sunk_.contains(node.get())) continue;
      for (ir::Value* v : node->inputs) {
        if (!is_invariant(v, body_) && !made.contains(v) && !behind.has(v)) {
          behind.set(v, loop_.add_scan_output(v, iterations_, reverse_, std::string(v->name) + ":rows"));
        }
      }
      made.insert(node->outputs.begin(), node->outputs.end());
    }
  }

  void move(StackedNodes& behind) {
    std::vector<std::unique_ptr<ir::Node>> staying;
    for (auto& node : body_.nodes) {
      if (sunk_.contains(node.get())) {
        note(remarks_, Change::kSunk, body_, *node);
        gone_.insert(node->outputs.begin(), node->outputs.end());
        behind.add(std::move(node));
      } else {
        staying.push_back(std::move(node));
      }
    }
    body_.nodes = std::move(staying);
    for (size_t i = 0; i < loop_.scan_outputs(); ++i) {
      const LoopView::ScanOutput out = loop_.scan_output(i);
      if (!out.row || !gone_.contains(out.row)) continue;
      if (out.whole) {
        replaced_[out.whole] = behind.whole(out.row);
        out.whole->producer = nullptr;
      }
      loop_.clear_scan_output(i);
    }
  }

  ir::Graph& graph_;
  ir::Region& region_;
  const size_t at_;
  LoopEditor loop_;
  ir::Region& body_;
  Remarks* remarks_;
  std::unordered_map<ir::Value*, ir::Value*>& replaced_;
  bool reverse_ = false;
  Dim iterations_;
  std::unordered_set<const ir::Value*> rows_, gone_;
  std::unordered_map<const ir::Value*, ir::Value*> scanned_;
  std::unordered_map<const ir::Value*, std::vector<const ir::Node*>> users_;
  std::unordered_set<const ir::Node*> sunk_;
};

}  // namespace

void sink_outputs(ir::Graph& graph, Remarks* remarks) {
  std::unordered_map<ir::Value*, ir::Value*> replaced;
  rewrite_nodes(graph.top(), replaced, [&](ir::Region& region, size_t at) {
    return is_loop(*region.nodes[at]) ? at + Sinker(graph, region, at, remarks, replaced).run() : at;
  });
  ir::replace_uses(graph, replaced);
}

}  // namespace treadle::opt
