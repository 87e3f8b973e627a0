#include "session/shared_weights.h"

#include "type/shared_tensor.h"

namespace treadle::session {

void share_weights(ir::Graph& graph) {
  const uint32_t walk = ir::new_walk();
  const auto share = [&](ir::Value* value) {
    if (!value || !value->is_constant() || value->note.walk == walk) return;
    value->note.walk = walk;
    value->constant = shared(value->constant);
  };
  for (Tensor& tensor : graph.input_defaults) tensor = shared(tensor);
  for (ir::Value* value : graph.top().outputs) share(value);
  ir::for_each_node(graph.top(), [&](ir::Node& node) {
    for (ir::Value* value : node.inputs) share(value);
    for (const auto& body : node.regions) {
      for (ir::Value* value : body->outputs) share(value);
    }
  });
}

}  // namespace treadle::session
