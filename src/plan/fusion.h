#pragma once
// Which elementwise nodes run together as one instruction.

#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/pointer_map.h"
#include "base/status.h"
#include "ir/graph.h"
#include "kernels/fused.h"
#include "kernels/reduce.h"
#include "op/elementwise.h"
#include "plan/kernel_code.h"

namespace treadle::plan {

// Nodes that stand together in the program, in an order in which they may run. Fused: one kernel runs them all.
struct Unit {
  std::vector<const ir::Node*> nodes;  // elementwise ones and aliases
  bool fused = false;
  std::vector<const ir::Node*> reductions;  // of what `nodes` make; all of one Lines
  // What `nodes` read where it comes from; nobody runs the nodes that make it. Of a unit that is not fused, its node is
  // a Concat.
  std::vector<const ir::Value*> views;
  std::vector<const ir::Node*> all() const;  // nodes and reductions
};

struct FusedGroup {
  explicit FusedGroup(size_t count) : builder(count) {}

  kernels::FusedBuilder builder;                  // complete
  std::vector<const ir::Value*> inputs, outputs;  // in the order of the plan's bound places
  // Reductions of outputs of the builder: of `outputs`, or of those behind them, which only the group sees.
  struct Reduction {
    const ir::Node* node = nullptr;
    size_t output = 0;
    kernels::ReducePlan plan;
  };
  std::vector<Reduction> reductions;
  std::vector<ElementType> hidden;  // types of the builder's outputs behind `outputs`
  size_t line = 0;                  // elements that belong to one position of the outermost axis that is kept
  // Values that are another one's memory under other sizes: (alias, one of `outputs`).
  std::vector<std::pair<const ir::Value*, const ir::Value*>> aliases;
};

// The kernel of a FusedPlan: operands are its bound places, then scratch.
uint32_t run_fused(const void* state, void* const* slots, const uint32_t* operands);

class Fusion {
 public:
  // Not `enabled`: every node stays alone. `threads`: that a run may use.
  Fusion(const ir::Graph& graph, bool enabled, int threads);

  // The nodes of `region` in the order in which they are to run; nested regions are not looked into.
  std::vector<Unit> units(const ir::Region& region);
  FusedGroup build(const Unit& unit) const;
  // How many values somebody reads.
  size_t values() const { return uses_.size(); }
  // Whether a unit that is not fused could be the only member of a group.
  bool can_be_group(const Unit& unit) const { return unit.nodes.size() == 1 && form_.contains(unit.nodes[0]); }
  // What a member of a group computes, aliases apart.
  const ElementwiseForm& form(const ir::Node& node) const { return **form_.find(&node); }
  const kernels::ReducePlan& reduction(const ir::Node& node) const { return reductions_.at(&node); }
  const Lines& lines(const ir::Node& node) const { return lines_.at(&node); }
  // Where a member of `unit` reads `v`.
  struct Source {
    const ir::Value* value = nullptr;
    int64_t start = 0;  // in elements
    Operand operand;    // from there on
  };
  Source source(const Unit& unit, const ir::Value* v) const;

 private:
  friend class Pending;
  struct Members;
  void add_reductions(const Unit& unit, Members& members) const;
  // Whether it can be a member of a group: what it computes is then in forms_.
  bool is_elementwise(const ir::Node& node);
  // Whether members of groups can read what it makes from its operand: how is then in views_.
  bool is_view(const ir::Node& node);
  // Whether it can be part of the group that makes its operand: reductions_ and lines_ then know it.
  bool is_reduction(const ir::Node& node);
  // Whether all that `unit` reads lies evenly along each axis of `lines`.
  bool is_even(const Unit& unit, const Lines& lines) const;

  bool enabled_;
  int threads_;
  PointerMap<ir::Value, size_t> uses_;           // in all regions, as outputs of regions too
  std::deque<ElementwiseForm> forms_;            // of members of groups
  PointerMap<ir::Node, ElementwiseForm*> form_;  // which is whose
  std::unordered_map<const ir::Value*, ElementwiseForm::View> views_;
  std::unordered_map<const ir::Node*, kernels::ReducePlan> reductions_;
  std::unordered_map<const ir::Node*, Lines> lines_;
};

}  // namespace treadle::plan
