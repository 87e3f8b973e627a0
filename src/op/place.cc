#include "op/place.h"

#include "op/op_def.h"

namespace treadle {

std::string node_place(const ir::NodeInfo& node) {
  if (node.attributes.has(kNamedAs)) return std::string(node.attributes.get_string(kNamedAs));
  return fmt::format("{} ({}-{})", node.name, node.op->name, node.version->since);
}

ir::Attribute named_as(const ir::NodeInfo& whole) {
  return ir::Attribute::of(std::string(kNamedAs), node_place(whole));
}

bool is_part(const ir::NodeInfo& node, const ir::NodeInfo& whole) {
  return node.attributes.has(kNamedAs) && node_place(node) == node_place(whole);
}

}  // namespace treadle
