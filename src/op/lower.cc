#include "op/lower.h"

#include <optional>

#include "base/memory_account.h"

namespace treadle {

Result<std::unique_ptr<ir::Graph>> lower_node(const ir::NodeInfo& node, std::span<const Type* const> types,
                                              std::span<const Tensor* const> values,
                                              std::span<const std::unique_ptr<ir::Region>> bodies,
                                              std::vector<ir::Value*>* captured) {
  // A lowering cannot fail for lack of memory. Its constants are only counted, and the next tensor is refused.
  std::optional<MemoryScope> counted;
  if (const MemoryScope* scope = MemoryScope::current())
    counted.emplace(scope->account(), MemoryScope::Refuses::kNothing);
  auto graph = std::make_unique<ir::Graph>();
  LowerContext context(node, types, values, *graph, bodies);
  TREADLE_TRY(node.op->lower(context));
  if (captured) captured->assign(context.captures().begin(), context.captures().end());
  return graph;
}

Status check_outputs_made(const ir::Node& node, const ir::Graph& lowered) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] && !lowered.top().outputs[i]) return not_made(node, i);
  }
  return {};
}

Status not_made(const ir::NodeInfo& node, size_t i) {
  const Formal* formal = node.version->output(i);
  return error(Code::kNotImplemented,
               "output {} ({}) is named, but the node does not make it with these inputs and attributes", i,
               formal ? formal->name : "?");
}

}  // namespace treadle
