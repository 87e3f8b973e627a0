// If in a loop, on a condition that is the same in every trip: the condition is asked once, around the loop.
//
//   Loop(...; If(c; then: A | else: B); ...)   becomes   If(c; then: Loop(...; A; ...) | else: Loop(...; B; ...))
//
// The same nodes run as before, in the same trips, so whether they can fail does not matter. Each branch's loop can
// then be rewritten and fused as if it had been written without the other. What it costs: the loop twice, and a copy of
// its results; so loops are small, and so are their rows. Inner loops first: the If that is then around an inner loop
// may go around the outer one as well. Every If of the loop on the same condition is decided.
#include <algorithm>
#include <unordered_map>

#include "op/loop_view.h"
#include "opt/builder.h"
#include "opt/loop_edits.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/stacked.h"

namespace treadle::opt {

namespace {

constexpr size_t kMaxNodes = 96;       // of a loop
constexpr int64_t kMaxRowBytes = 512;  // of all scan outputs of one trip
constexpr size_t kMaxCopied = 4096;    // nodes of all loops together: every further condition of a loop doubles it

// A condition that comes from outside of `body`, of an If right in it; null: none.
ir::Value* fixed_condition(const ir::Region& body) {
  for (const auto& node : body.nodes) {
    if (node->op->control != Control::kIf) continue;
    ir::Value* condition = node->inputs[0];
    if (is_invariant(condition, body) && !condition->is_constant() && is_single_bool(*condition)) return condition;
  }
  return nullptr;
}

bool is_small(const LoopView& loop) {
  if (ir::count_nodes(loop.body()) > kMaxNodes) return false;
  int64_t bytes = 0;
  for (size_t i = 0; i < loop.scan_outputs(); ++i) {
    const ir::Value* row = loop.scan_output(i).row;
    if (!row) continue;
    if (!row->type.is_concrete() || is_string(row->type.element)) return false;
    bytes += count_of(*row) * static_cast<int64_t>(byte_width(row->type.element));
  }
  return bytes <= kMaxRowBytes;
}

class Unswitcher {
 public:
  Unswitcher(ir::Graph& graph, Remarks* remarks) : graph_(graph), remarks_(remarks) {}

  void walk(ir::Region& top) {
    visit_nodes(top, [this](ir::Region& region, size_t at) {
      if (!is_loop(*region.nodes[at]) || !is_small(LoopView(*region.nodes[at])) || copied_ >= kMaxCopied) return at;
      ir::Value* condition = fixed_condition(*region.nodes[at]->regions[0]);
      if (!condition) return at;
      ir::Node& choice = put_if_around(region, at, condition);
      // Other conditions of the two loops.
      for (auto& branch : choice.regions) walk(*branch);
      return at;
    });
  }

 private:
  ir::Node& put_if_around(ir::Region& region, size_t at, ir::Value* condition) {
    const ir::Node& loop = *region.nodes[at];
    copied_ += ir::count_nodes(*loop.regions[0]) + 1;
    note_decisions(*loop.regions[0], loop, condition);
    ir::Node& choice = put_into_branches(graph_, region, at, condition, std::string(loop.name) + ":choice");
    for (const bool taken : {true, false}) {
      fold_branches(*IfView(choice).branch(taken).nodes[0]->regions[0], condition, taken);
    }
    return choice;
  }

  void note_decisions(const ir::Region& body, const ir::Node& loop, const ir::Value* condition) {
    ir::for_each_node(body, [&](const ir::Node& node) {
      const bool decided = node.op->control == Control::kIf && node.inputs[0] == condition;
      if (decided) note_of_loop(remarks_, Change::kDecided, loop, node, "once, around the loop");
    });
  }

  // The nodes of the branch that is taken stand where each If on `condition` stood.
  void fold_branches(ir::Region& region, const ir::Value* condition, bool taken) {
    std::unordered_map<ir::Value*, ir::Value*> replaced;
    for (size_t at = 0; at < region.nodes.size(); ++at) {
      if (region.nodes[at]->op->control == Control::kIf && region.nodes[at]->inputs[0] == condition) {
        const std::unique_ptr<ir::Node> node = take_out(region, at);
        ir::Region& branch = IfView(*node).branch(taken);
        for (size_t i = 0; i < node->outputs.size(); ++i) {
          if (node->outputs[i]) replaced[node->outputs[i]] = branch.outputs[i];
        }
        Builder(graph_, region, at).adopt_all(branch);
        --at;  // what has taken its place may be such an If itself
      } else {
        for (auto& inner : region.nodes[at]->regions) fold_branches(*inner, condition, taken);
      }
    }
    if (!replaced.empty()) ir::replace_uses(region, replaced);
  }

  ir::Graph& graph_;
  Remarks* remarks_;
  size_t copied_ = 0;
};

}  // namespace

void unswitch_loops(ir::Graph& graph, Remarks* remarks) {
  Unswitcher(graph, remarks).walk(graph.top());
}

}  // namespace treadle::opt
