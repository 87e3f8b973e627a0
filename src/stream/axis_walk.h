#pragma once
// A walk over a graph that follows one axis of an input through nodes and branches, as far as operators state where the
// axis goes.

#include <algorithm>

#include "op/axes.h"
#include "op/op_def.h"

namespace treadle::stream {

class AxisWalk {
 public:
  AxisWalk(const ir::Value* input, int64_t axis) { axes_[input] = axis; }
  AxisWalk(const AxisWalk&) = delete;
  virtual ~AxisWalk() = default;

  void walk(const ir::Region& region) {
    for (const auto& node : region.nodes) visit(*node);
  }
  int64_t axis_of(const ir::Value* v) const {
    const auto it = axes_.find(v);
    return it == axes_.end() ? kNoAxis : it->second;
  }

 protected:
  // Handles a node that reads a value along the axis, in its body too; never an If. Has to record where the axis goes.
  virtual void pass(const ir::Node& node) = 0;
  // Result `to` was made of `from`.
  virtual void pass_to(const ir::Value* to, const ir::Value* from) { give(to, axis_of(from)); }

  bool runs_along(const ir::Value* v) const { return v && axes_.contains(v); }
  void give(const ir::Value* to, int64_t axis) {
    if (to && axis != kNoAxis) axes_[to] = axis;
  }
  // Follows the axis by the operator's rule. Loses it if the operator has none.
  void carry(const ir::Node& node) {
    const bool keeps_rank = node.op->over_time == TimeRule::kSlice || node.op->over_time == TimeRule::kPad;
    if (keeps_rank && runs_along(node.inputs[0])) return give(node.outputs[0], axis_of(node.inputs[0]));
    (void)carry_axis(node, axes_);
  }

 private:
  void visit(const ir::Node& node) {
    if (node.op->control == Control::kIf) return visit_branches(node);
    bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), [&](const ir::Value* v) { return runs_along(v); });
    for (const auto& body : node.regions) {
      for (const ir::Value* v : ir::captures(*body)) reads |= runs_along(v);
    }
    if (reads) pass(node);
  }
  void visit_branches(const ir::Node& node) {
    for (const auto& branch : node.regions) {
      walk(*branch);
      for (size_t i = 0; i < node.outputs.size() && i < branch->outputs.size(); ++i) {
        if (branch->outputs[i]) pass_to(node.outputs[i], branch->outputs[i]);
      }
    }
  }

  AxisMap axes_;
};

}  // namespace treadle::stream
