#include "model/node_finder.h"

#include "model/importer.h"

namespace treadle::model {

const wire::NodeProto* NodeFinder::find(std::string_view path) {
  return model_.graph ? find_in(model_.graph->nodes, "", path) : nullptr;
}

const wire::GraphProto* NodeFinder::body(const wire::NodeProto& node, std::string_view attribute) {
  for (const wire::AttributeProto& a : node.attributes) {
    if (a.name == attribute && a.g) return &*a.g;
  }
  return nullptr;
}

const wire::NodeProto* NodeFinder::find_in(const wire::List<wire::NodeProto>& nodes, const std::string& prefix,
                                           std::string_view path) {
  auto [it, fresh] = by_prefix_.try_emplace(prefix);
  Paths& paths = it->second;
  if (fresh) {
    NodePaths names(prefix);
    for (size_t i = 0; i < nodes.size(); ++i) paths.emplace(names.make(nodes[i], i), &nodes[i]);
  }
  // Names may contain slashes, so the longest beginning that is a node's path counts.
  for (size_t end = path.size(); end != std::string_view::npos && end > prefix.size();
       end = path.find_last_of(":/", end - 1)) {
    const auto found = paths.find(std::string(path.substr(0, end)));
    if (found == paths.end()) continue;
    const wire::NodeProto* inner = end < path.size() ? find_inside(*found->second, end, path) : nullptr;
    return inner ? inner : found->second;
  }
  return nullptr;
}

// `length`: of the node's own path.
const wire::NodeProto* NodeFinder::find_inside(const wire::NodeProto& node, size_t length, std::string_view path) {
  if (path[length] == ':') {
    const size_t slash = std::min(path.find('/', length), path.size());
    const wire::GraphProto* graph = body(node, path.substr(length + 1, slash - length - 1));
    return graph ? find_in(graph->nodes, std::string(path.substr(0, slash)), path) : nullptr;
  }
  if (!has_functions_) {
    has_functions_ = true;
    auto opsets = read_opsets(model_.opset_imports);
    if (opsets.ok()) static_cast<void>(functions_.build(model_, *opsets).ok());
  }
  const Function* function = functions_.find(node);
  return function ? find_in(function->proto->nodes, std::string(path.substr(0, length)), path) : nullptr;
}

}  // namespace treadle::model
