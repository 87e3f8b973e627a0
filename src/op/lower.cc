#include "op/lower.h"

namespace treadle {

Result<std::unique_ptr<ir::Graph>> lower_node(const ir::NodeInfo& node, std::span<const Type* const> types,
                                              std::span<const Tensor* const> values,
                                              std::span<const std::unique_ptr<ir::Region>> bodies,
                                              std::vector<ir::Value*>* captured) {
  auto graph = std::make_unique<ir::Graph>();
  LowerContext context(node, types, values, *graph, bodies);
  TREADLE_TRY(node.op->lower(context));
  if (captured) captured->assign(context.captures().begin(), context.captures().end());
  return graph;
}

}  // namespace treadle
