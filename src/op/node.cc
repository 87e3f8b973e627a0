#include "op/node.h"

#include <algorithm>
#include <unordered_map>

#include "op/registry.h"

namespace treadle {

namespace {

ir::Attributes collect_defaults(const OpVersion& version) {
  ir::Attributes defaults;
  for (const AttributeDef& a : version.attributes) {
    if (a.has_default()) defaults.set(a.default_value);
  }
  return defaults;
}

// The defaults of all registered versions. Nodes share them until they change one.
const std::unordered_map<const OpVersion*, ir::Attributes>& registered_defaults() {
  static const auto* const all = [] {
    auto* made = new std::unordered_map<const OpVersion*, ir::Attributes>;  // like the registry, never destroyed
    for (const OpDef* op : all_ops()) {
      for (const OpVersion& version : op->versions) made->emplace(&version, collect_defaults(version));
    }
    return made;
  }();
  return *all;
}

}  // namespace

ir::Attributes default_attributes(const OpVersion& version) {
  const auto found = registered_defaults().find(&version);
  return found == registered_defaults().end() ? collect_defaults(version) : found->second;
}

void become(ir::Node& node, const OpDef& op, const OpVersion& version, const ir::Attributes& given) {
  ir::Attributes attributes = default_attributes(version);
  for (const ir::Attribute& a : given.all()) attributes.set(a);
  node.op = &op;
  node.version = &version;
  node.attributes = std::move(attributes);
  node.parsed = nullptr;
}

bool has_all_defaults(const ir::Region& region) {
  bool all = true;
  ir::for_each_node(region, [&](const ir::Node& node) {
    all &= std::all_of(node.version->attributes.begin(), node.version->attributes.end(),
                       [&](const AttributeDef& a) { return !a.has_default() || node.attributes.has(a.name); });
  });
  return all;
}

// Defined here because the graph knows no operator record. Nodes thus always have the defaults of their operator.
ir::Node* ir::Graph::new_node(Region* region, const OpDef* op, const OpVersion* version, std::string_view name,
                              size_t index) {
  std::unique_ptr<Node> node(new (arena_) Node);
  node->op = op;
  node->version = version;
  if (version) node->attributes = default_attributes(*version);
  node->name = Name::borrow(arena_.copy(name));
  node->parent = region;
  Node* made = node.get();
  if (index >= region->nodes.size()) {
    region->nodes.push_back(std::move(node));
  } else {
    region->nodes.insert(region->nodes.begin() + static_cast<std::ptrdiff_t>(index), std::move(node));
  }
  return made;
}

}  // namespace treadle
