// If both branches of an If are a few elementwise operations on a few elements, both branches run one after the other,
// and Where picks the results. That costs less than a mispredicted jump. The nodes of the two bodies join the
// elementwise groups around them; in a loop, the whole body may become one group.
//
//   If(c; then: p = 3 v; q = p + 1 | else: r = v / 2)   becomes   p = 3 v; q = p + 1; r = v / 2; Where(c, q, r)
//
// Only nodes that cannot fail, so that the branch that is not taken does no harm. Inner branches are replaced first;
// the nodes that they become are then treated like any other nodes.
#include <algorithm>
#include <unordered_map>

#include "op/effects.h"
#include "op/loop_view.h"
#include "op/op_def.h"
#include "op/work.h"
#include "opt/builder.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/stacked.h"

namespace treadle::opt {

namespace {

// Nodes in both branches together, and elements in each result. Measured in a Scan with a random condition: at 8 nodes
// of 16 elements the interpreter takes 15 ns an iteration in place of 34, native code 8 in place of 7. At 32 nodes of
// one element, the interpreter takes 41 in place of 45; at 4 nodes of 160 elements, 59 in place of 68.
constexpr size_t kMaxNodes = 8;
constexpr int64_t kMaxElements = 16;

// Whether the node takes a few vector instructions. A call of a library or a polynomial takes longer than a
// mispredicted jump.
bool is_cheap(const ir::Node& node) {
  if (!is_total(node) || node.outputs.size() != 1 || !node.outputs[0]) return false;
  if (count_of(*node.outputs[0]) > kMaxElements) return false;
  if (node.op->alias_input >= 0) return true;
  const std::optional<kernels::Price> price = price_of(node);
  if (price == kernels::Price::kRemainder) return !is_float(node.inputs[0]->type.element);
  return price && *price < kernels::Price::kRemainder;
}

// Whether Where can pick between the results: they have one type, and rank enough for the condition to broadcast.
bool can_pick(const ir::Value& condition, const ir::Value* a, const ir::Value* b) {
  if (!a || !b || !a->type.is_concrete() || !b->type.is_concrete()) return false;
  return a->type.element == b->type.element && a->type.element != ElementType::kString &&
         same(a->type.shape, b->type.shape) && a->type.shape.size() >= condition.type.shape.size() &&
         count_of(*a) <= kMaxElements;
}

bool can_select(const ir::Node& node) {
  if (!is_single_bool(*node.inputs[0])) return false;
  const IfView choice(node);
  const ir::Region &yes = choice.then_branch(), &no = choice.else_branch();
  if (yes.nodes.size() + no.nodes.size() > kMaxNodes) return false;
  for (const ir::Region* branch : {&yes, &no}) {
    if (!std::all_of(branch->nodes.begin(), branch->nodes.end(), [](const auto& n) { return is_cheap(*n); })) {
      return false;
    }
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] && !can_pick(*node.inputs[0], yes.outputs[i], no.outputs[i])) return false;
  }
  return true;
}

class Selector {
 public:
  Selector(ir::Graph& graph, Remarks* remarks) : graph_(graph), remarks_(remarks) {}

  void run() {
    rewrite_nodes(graph_.top(), [&](ir::Region& region, size_t at) {
      if (region.nodes[at]->op->control != Control::kIf || !can_select(*region.nodes[at])) return at;
      note(remarks_, Change::kSelected, region, *region.nodes[at]);
      return replace(region, at);
    });
    if (!replaced_.empty()) ir::replace_uses(graph_, replaced_);
  }

 private:
  // Returns the position of the last node that replaces the If.
  size_t replace(ir::Region& region, size_t at) {
    const std::unique_ptr<ir::Node> node = take_out(region, at);
    Builder build(graph_, region, at);
    const IfView choice(*node);
    for (const bool branch : {true, false}) build.adopt_all(choice.branch(branch));
    for (size_t i = 0; i < choice.results(); ++i) {
      const auto [yes, no, result] = choice.result(i);
      if (result) replaced_[result] = yes == no ? yes : pick(build, *node, yes, no);
    }
    return build.at() - 1;
  }

  static ir::Value* pick(Builder& build, const ir::Node& choice, ir::Value* yes, ir::Value* no) {
    return build.call("Where", {choice.inputs[0], yes, no}, yes->type, std::string(choice.name) + ":select");
  }

  ir::Graph& graph_;
  Remarks* remarks_;
  std::unordered_map<ir::Value*, ir::Value*> replaced_;
};

}  // namespace

void select_branches(ir::Graph& graph, Remarks* remarks) {
  Selector(graph, remarks).run();
}

}  // namespace treadle::opt
