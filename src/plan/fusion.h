#pragma once
// Which elementwise nodes run together as one instruction.

#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "kernels/fused.h"
#include "op/elementwise.h"

namespace treadle::plan {

// Nodes that stand together in the program, in an order in which they may run. Fused: one kernel runs them all.
struct Unit {
  std::vector<const ir::Node*> nodes;
  bool fused = false;
};

struct FusedGroup {
  kernels::FusedBuilder builder;                  // complete
  std::vector<const ir::Value*> inputs, outputs;  // in the order of the plan's bound places
  // Values that are another one's memory under other sizes: (alias, one of `outputs`).
  std::vector<std::pair<const ir::Value*, const ir::Value*>> aliases;
};

// The kernel of a FusedPlan: operands are its bound places, then scratch.
uint32_t run_fused(const void* state, void* const* slots, const uint32_t* operands);

class Fusion {
 public:
  // Not `enabled`: every node stays alone.
  Fusion(const ir::Graph& graph, bool enabled);

  // The nodes of `region` in the order in which they are to run; nested regions are not looked into.
  std::vector<Unit> units(const ir::Region& region);
  FusedGroup build(const Unit& unit) const;
  // Whether a unit that is not fused could be the only member of a group.
  bool can_be_group(const Unit& unit) const { return unit.nodes.size() == 1 && forms_.contains(unit.nodes[0]); }
  // What a member of a group computes, aliases apart.
  const ElementwiseForm& form(const ir::Node& node) const { return forms_.at(&node); }

 private:
  friend class Pending;
  // Whether it can be a member of a group: what it computes is then in forms_.
  bool is_elementwise(const ir::Node& node);

  bool enabled_;
  std::unordered_map<const ir::Value*, size_t> uses_;  // in all regions, as outputs of regions too
  std::unordered_map<const ir::Node*, ElementwiseForm> forms_;
};

}  // namespace treadle::plan
