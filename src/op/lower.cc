#include "op/lower.h"

namespace treadle {

Result<std::unique_ptr<ir::Graph>> lower_node(const ir::NodeInfo& node, std::span<const Type* const> types,
                                              std::span<const Tensor* const> values) {
  auto graph = std::make_unique<ir::Graph>();
  LowerContext context(node, types, values, *graph);
  TREADLE_TRY(node.op->lower(context));
  return graph;
}

}  // namespace treadle
