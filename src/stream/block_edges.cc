#include "stream/block_edges.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "op/loop_view.h"
#include "ops/nn/window.h"
#include "stream/axis_walk.h"
#include "stream/time_walk.h"

namespace treadle::stream {

namespace {

class EdgeWalk : public AxisWalk {
 public:
  EdgeWalk(const ir::Graph& graph, const ir::Value* input, int64_t axis, std::span<const ir::Value* const> states)
      : AxisWalk(input, axis), of_states_(states.begin(), states.end()) {
    follow_states(graph.top());
    walk(graph.top());
  }
  std::string found;

 private:
  // Marks every value that is computed from a state.
  void follow_states(const ir::Region& region) {
    for (const auto& node : region.nodes) {
      for (const auto& body : node->regions) follow_states(*body);
      bool any = false;
      for (const ir::Value* v : node->inputs) any |= of_states_.contains(v);
      for (const auto& body : node->regions) {
        for (const ir::Value* v : ir::captures(*body)) any |= of_states_.contains(v);
      }
      for (const ir::Value* v : node->outputs) {
        if (v && any) of_states_.insert(v);
      }
    }
  }

  // Windows use up the positions of the block before, so windows over their results need such positions as well.
  void pass(const ir::Node& node) override {
    if (!found.empty()) return;
    bool carried = false;
    for (const ir::Value* v : node.inputs) carried |= v && carried_.contains(v);
    if (!carried) found = edge(node);
    const bool is_window = node.op->over_time == TimeRule::kWindow || node.op->over_time == TimeRule::kTransposedWindow;
    carry(node);
    if (node.op->over_time == TimeRule::kConcat) carried |= join(node);
    if (carried && !is_window) carried_.insert(node.outputs.begin(), node.outputs.end());
  }

  void pass_to(const ir::Value* to, const ir::Value* from) override {
    AxisWalk::pass_to(to, from);
    if (carried_.contains(from)) carried_.insert(to);
  }

  // Follows a Concat with the signal; returns whether the other operand comes from the block before.
  bool join(const ir::Node& node) {
    const auto in =
        std::find_if(node.inputs.begin(), node.inputs.end(), [&](const ir::Value* v) { return runs_along(v); });
    const int64_t axis = axis_of(*in);
    give(node.outputs[0], axis);
    if (from_front(node.attributes.get_int("axis"), (*in)->type.rank()) != axis) return false;
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](const ir::Value* v) { return !runs_along(v) && of_states_.contains(v); });
  }

  std::string edge(const ir::Node& node) const {
    switch (node.op->over_time) {
      case TimeRule::kWindow:
      case TimeRule::kTransposedWindow:
        return edge_of_windows(node);
      case TimeRule::kPad:
        return runs_along(node.inputs[0]) ? edge_of_pads(node) : "";
      case TimeRule::kRecurrence:
        return edge_of_recurrence(node);
      case TimeRule::kScan:
      case TimeRule::kLoop:
        return edge_of_loop(node);
      default:
        return node.op->name == "STFT" ? label(node) + " takes windows that overlap" : "";
    }
  }

  std::string edge_of_windows(const ir::Node& node) const {
    const int64_t axis = axis_of(node.inputs[0]), rank = node.inputs[0]->type.rank();
    if (axis < 2) return "";
    const auto at = static_cast<size_t>(axis - 2);
    const auto window = nn::read_window(node.attributes, static_cast<size_t>(rank - 2));
    if (!window.ok()) return "";
    Dim size = window->has_kernel ? Dim(window->kernel[at]) : Dim();
    if (!window->has_kernel && node.op->product == Product::kConvolution) {
      const Type& weights = node.inputs[node.op->factors[1]]->type;
      if (weights.has_shape && weights.rank() == rank) size = weights.shape[static_cast<size_t>(axis)];
    }
    if (!size.is_known()) return "";
    const int64_t reach = (size.value() - 1) * window->dilation[at] + 1;
    if (reach <= window->stride[at]) return "";
    return fmt::format("{} puts {} positions together, {} apart", label(node), reach, window->stride[at]);
  }

  std::string edge_of_pads(const ir::Node& node) const {
    const auto pads = constant_axes(node, 1, "pads");
    const auto rank = static_cast<size_t>(node.inputs[0]->type.rank()),
               axis = static_cast<size_t>(axis_of(node.inputs[0]));
    const bool known = pads && pads->size() == 2 * rank && (node.inputs.size() < 4 || !node.inputs[3]);
    if (known && (*pads)[axis] == 0 && (*pads)[axis + rank] == 0) return "";
    return label(node) + " pads each block";
  }

  std::string edge_of_recurrence(const ir::Node& node) const {
    const int64_t time = node.attributes.get_int("layout") == 0 ? 0 : 1;
    if (axis_of(node.inputs[0]) != time) return "";
    const ir::Value* initial = node.inputs.size() > 5 ? node.inputs[5] : nullptr;
    return !of_states_.contains(initial) ? label(node) + " begins anew with each block" : "";
  }

  std::string edge_of_loop(const ir::Node& node) const {
    const LoopView loop(node);
    if (loop.states() == 0) return "";
    for (size_t i = 0; i < loop.states(); ++i) {
      if (of_states_.contains(loop.state(i).initial)) return "";
    }
    return label(node) + " begins anew with each block";
  }

  std::unordered_set<const ir::Value*> of_states_, carried_;
};

}  // namespace

std::string edges_of_blocks(const ir::Graph& graph, const ir::Value* input, int64_t axis,
                            std::span<const ir::Value* const> states) {
  return EdgeWalk(graph, input, axis, states).found;
}

}  // namespace treadle::stream
