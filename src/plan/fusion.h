#pragma once
// Decides which elementwise nodes run together as one instruction.

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

// Neighbouring nodes of the program, in an order in which they may run. If `fused`, one kernel runs all of them.
struct Unit {
  std::vector<const ir::Node*> nodes;  // elementwise nodes and aliases
  bool fused = false;
  std::vector<const ir::Node*> reductions;  // reductions of results of `nodes`, all with the same Lines
  // Values that `nodes` read from the operand of the view; the nodes that make these values do not run. In a unit that
  // is not fused, the only node is a Concat.
  std::vector<const ir::Value*> views;
  std::vector<const ir::Node*> all() const;  // nodes and reductions
};

struct FusedGroup {
  explicit FusedGroup(size_t count) : builder(count) {}

  kernels::FusedBuilder builder;                  // complete
  std::vector<const ir::Value*> inputs, outputs;  // in the order of the plan's bound positions
  // A reduction of an output of the builder: one of `outputs`, or one behind them, which only the group reads.
  struct Reduction {
    const ir::Node* node = nullptr;
    size_t output = 0;
    kernels::ReducePlan plan;
  };
  std::vector<Reduction> reductions;
  std::vector<ElementType> hidden;  // types of the builder's outputs behind `outputs`
  size_t line = 0;                  // elements at one position of the outermost kept axis
  // Values that share another value's memory with other sizes: (alias, one of `outputs`).
  std::vector<std::pair<const ir::Value*, const ir::Value*>> aliases;
};

// Whether the node's result shares the memory of an operand: aliased(node).
inline bool is_alias(const ir::Node& node) {
  return node.op->alias_input >= 0;
}
inline const ir::Value* aliased(const ir::Node& node) {
  return node.inputs[static_cast<size_t>(node.op->alias_input)];
}

// The kernel of a FusedPlan. Operands: the plan's bound positions, then scratch.
uint32_t run_fused(const void* state, void* const* slots, const uint32_t* operands);

class Fusion {
 public:
  struct Options {
    bool enabled = true;  // otherwise every node stays alone
    bool reduces = true;  // groups may reduce what they make
    int threads = 1;      // the number that a run may use
  };
  Fusion(const ir::Graph& graph, const Options& options);

  // The nodes of `region` in the order in which they should run. Nested regions are not included.
  std::vector<Unit> units(const ir::Region& region);
  FusedGroup build(const Unit& unit) const;
  // The number of values with readers.
  size_t values() const { return uses_.size(); }
  // Whether a unit that is not fused could be the only member of a group.
  bool can_be_group(const Unit& unit) const { return unit.nodes.size() == 1 && form_.contains(unit.nodes[0]); }
  // The computation of a group's member; not for aliases.
  const ElementwiseForm& form(const ir::Node& node) const { return **form_.find(&node); }
  const kernels::ReducePlan& reduction(const ir::Node& node) const { return reductions_.at(&node); }
  const Lines& lines(const ir::Node& node) const { return lines_.at(&node); }
  // The memory from which a member of `unit` reads `v`.
  struct Source {
    const ir::Value* value = nullptr;
    int64_t start = 0;  // in elements
    Operand operand;    // its layout, from `start` on
  };
  Source source(const Unit& unit, const ir::Value* v) const;

 private:
  friend class Pending;
  struct Members;
  void add_reductions(const Unit& unit, Members& members) const;
  // Whether the node can be a member of a group; if so, adds its form to forms_.
  bool is_elementwise(const ir::Node& node);
  // Whether members of groups can read the node's result from its operand; if so, adds the view to views_.
  bool is_view(const ir::Node& node);
  // Whether the node can be a part of the group that makes its operand; if so, adds it to reductions_ and lines_.
  bool is_reduction(const ir::Node& node);
  // Whether all operands of `unit` have constant strides along each axis of `lines`.
  bool is_even(const Unit& unit, const Lines& lines) const;

  Options options_;
  PointerMap<ir::Value, size_t> uses_;           // in all regions; outputs of regions count
  std::deque<ElementwiseForm> forms_;            // of members of groups
  PointerMap<ir::Node, ElementwiseForm*> form_;  // the form of each node
  std::unordered_map<const ir::Value*, ElementwiseForm::View> views_;
  std::unordered_map<const ir::Node*, kernels::ReducePlan> reductions_;
  std::unordered_map<const ir::Node*, Lines> lines_;
};

}  // namespace treadle::plan
