// Products with weights in the body of a Scan (convolutions included) whose other operand depends only on the
// iteration's inputs: x_t W for every t is one product of [T, K] and W. They move in front of the loop, together with
// the nodes that lead to them from scan inputs, and with the nodes behind them whose results are no larger than their
// operands (a bias, a pool). Values that the rest of the body reads from the moved nodes become scan inputs.
//
//   Scan(h0, X; h, x: g = x W + b; h' = tanh(g + h R))   becomes   G = X W + b; Scan(h0, G; h, g: h' = tanh(g + h R))
//
// This pays for products and convolutions only: their weights are read once, not in each iteration. Any other node
// would trade a pass over registers for a pass over memory. So would a product of a row with few weights in a loop that
// is native code: native code inlines the product and computes it while it waits for the states. Only nodes that cannot
// fail move, so a loop without iterations raises no new error.
#include <algorithm>
#include <unordered_set>

#include "op/costs.h"
#include "op/gemm.h"
#include "op/loop_view.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/stacked.h"
#include "opt/uses.h"

namespace treadle::opt {

namespace {

class Batcher {
 public:
  // `native`: the loop will be native code.
  Batcher(ir::Graph& graph, ir::Region& region, size_t at, bool native, Remarks* remarks)
      : graph_(graph),
        region_(region),
        at_(at),
        scan_(*region.nodes[at]),
        body_(scan_.body()),
        native_(native),
        remarks_(remarks) {}

  // Returns the number of nodes put before the Scan.
  size_t run() {
    if (!batched_.begin(scan_)) return 0;
    for (const auto& node : body_.nodes) {
      if (batched_.add_results(*node, body_)) candidates_.insert(node.get());
    }
    choose();
    if (leaving_.empty()) return 0;
    StackedNodes outside(graph_, region_, at_, batched_.iterations());
    move(outside);
    add_scan_inputs(outside);
    return outside.added();
  }

 private:
  // --- which of the movable nodes move

  void choose() {
    for (const auto& node : body_.nodes) {
      if (!candidates_.contains(node.get())) continue;
      if (is_product_with_weights(*node, batched_.varies()) && !is_written_out(*node)) {
        leave_with_producers(*node);
      } else if (follows(*node)) {
        leaving_.insert(node.get());
      }
    }
  }

  bool is_written_out(const ir::Node& node) const {
    if (!native_ || node.op->product != Product::kMatrices || node.attributes.has(kHalfWeights)) return false;
    const ir::Value *row = node.inputs[node.op->factors[0]], *weights = node.inputs[node.op->factors[1]];
    const ElementType type = weights->type.element;
    return (type == ElementType::kFloat || type == ElementType::kDouble) && count_of(*weights) < costs::kFewWeights &&
           count_of(*row) == row->type.shape[row->type.shape.size() - 1].value();
  }

  void leave_with_producers(const ir::Node& node) {
    if (!leaving_.insert(&node).second) return;
    for (const ir::Value* v : node.inputs) {
      if (v && v->producer && candidates_.contains(v->producer)) leave_with_producers(*v->producer);
    }
  }

  // Whether the node reads nodes that move and its results are no larger than its operands: the results then take the
  // place of the operands in memory, for all iterations.
  bool follows(const ir::Node& node) const {
    int64_t largest = 0, made = 0;
    bool behind = false;
    for (const ir::Value* v : node.inputs) {
      if (!batched_.has(v)) continue;
      const bool leaves = v->producer && leaving_.contains(v->producer);
      if (v->producer && !leaves) return false;
      behind |= leaves;
      largest = std::max(largest, count_of(*v));
    }
    for (const ir::Value* v : node.outputs) made += v ? count_of(*v) : 0;
    return behind && made <= largest;
  }

  // --- moving

  void move(StackedNodes& outside) {
    for (size_t i = 0; i < scan_.scan_inputs(); ++i) {
      outside.set(scan_.scan_input(i).element, scan_.scan_input(i).whole);
    }
    std::vector<std::unique_ptr<ir::Node>> staying;
    for (auto& node : body_.nodes) {
      if (leaving_.contains(node.get())) {
        note(remarks_, Change::kBatched, body_, *node);
        moved_.insert(moved_.end(), node->outputs.begin(), node->outputs.end());
        outside.add(std::move(node));
      } else {
        staying.push_back(std::move(node));
      }
    }
    body_.nodes = std::move(staying);
  }

  // --- the inputs of the remaining body

  void add_scan_inputs(const StackedNodes& outside) {
    const ValueSet read = values_read(body_);
    for (ir::Value* element : moved_) {
      if (element && read.contains(element)) {
        scan_.add_scan_input(outside.whole(element), element, batched_.reverse(element));
      }
    }
    // Removes scan inputs without readers, but keeps one: a Scan takes its length from its scan inputs.
    for (size_t i = scan_.scan_inputs(); i-- > 0 && scan_.scan_inputs() > 1;) {
      if (!read.contains(scan_.scan_input(i).element)) scan_.remove_scan_input(i);
    }
  }

  ir::Graph& graph_;
  ir::Region& region_;
  const size_t at_;
  LoopEditor scan_;
  ir::Region& body_;
  const bool native_;
  Remarks* remarks_;
  FromScanInputs batched_;
  std::unordered_set<const ir::Node*> candidates_, leaving_;  // candidates could move
  std::vector<ir::Value*> moved_;                             // results of nodes that moved, in the order of the body
};

void batch(ir::Graph& graph, bool native, Remarks* remarks) {
  visit_nodes(graph.top(), [&](ir::Region& region, size_t at) {
    return is_scan(*region.nodes[at]) ? at + Batcher(graph, region, at, native, remarks).run() : at;
  });
}

}  // namespace

void batch_products(ir::Graph& graph, Remarks* remarks) {
  batch(graph, false, remarks);
}

void batch_large_products(ir::Graph& graph, Remarks* remarks) {
  batch(graph, true, remarks);
}

}  // namespace treadle::opt
