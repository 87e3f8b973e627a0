#include "session/deciding_inputs.h"

#include <algorithm>
#include <unordered_map>

#include "op/op_def.h"

namespace treadle::session {

namespace {

// Walks back from a value to the graph inputs whose contents it depends on. A node whose output depends on shapes alone
// (Shape, Size) ends the walk.
class Tracer {
 public:
  explicit Tracer(const ir::Graph& graph) {
    const auto& inputs = graph.top().inputs;
    for (size_t i = 0; i < inputs.size(); ++i) position_[inputs[i]] = i;
    found.resize(inputs.size());
    trace(graph.top());
  }

  std::vector<bool> found;

 private:
  void trace(const ir::Region& region) {
    for (const auto& node : region.nodes) {
      if (node->op->control == Control::kIf) decide(node->inputs[0]);
      for (size_t i = 0; i < node->inputs.size() && i < 64; ++i) {
        if (node->op->shape_inputs >> i & 1) decide(node->inputs[i]);
      }
      for (const auto& body : node->regions) trace(*body);
    }
  }

  void decide(const ir::Value* v) {
    if (!v || v->is_constant() || !seen_.insert({v, true}).second) return;
    if (const auto it = position_.find(v); it != position_.end()) {
      const Type& t = v->type;
      const bool small = t.is_tensor() && (is_integer(t.element) || t.element == ElementType::kBool) && t.has_shape &&
                         t.shape.size() <= 1;
      if (small) found[it->second] = true;
      return;
    }
    const ir::Node* node = v->producer;
    if (!node || node->op->over_time == TimeRule::kSize) return;
    if (!v->type.is_tensor() || is_float(v->type.element)) return;
    for (const ir::Value* in : node->inputs) decide(in);
  }

  std::unordered_map<const ir::Value*, size_t> position_;
  std::unordered_map<const ir::Value*, bool> seen_;
};

}  // namespace

std::vector<bool> deciding_inputs(const ir::Graph& graph) {
  return Tracer(graph).found;
}

}  // namespace treadle::session
