#include "claims.h"

#include <algorithm>

#include "growth.h"
#include "tensors.h"

namespace treadle::provider {

namespace {

// Elements of a recurrent operator's weights; 0 where onnxruntime does not know them.
int64_t weights_of(const Node& node) {
  int64_t elements = 0;
  for (const size_t input : {1, 2}) {  // of the input and of the state
    const OrtValueInfo* value = input < node.inputs.size() ? node.inputs[input] : nullptr;
    const OrtValue* contents = value ? constant_of(value) : nullptr;
    if (!contents) return 0;
    int64_t count = 1;
    for (const int64_t size : sizes_of(contents).dims) count *= size;
    elements += count;
  }
  return elements;
}

bool is_loop(const Node& node) {
  return node.is("Loop") || node.is("Scan");
}

bool holds_loop(const OrtGraph* body) {
  const std::vector<Node> nodes = read_nodes(body);
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
    return is_loop(node) || std::any_of(node.bodies.begin(), node.bodies.end(),
                                        [](const auto& inner) { return holds_loop(inner.second); });
  });
}

// What the claim grows to and that `accept` takes replaces the claims that are in it.
void claim_from(const Graph& graph, const std::set<size_t>& seeds, const std::function<bool(const Claim&)>& accept,
                std::vector<Claim>& claims) {
  std::optional<Claim> grown = Growth(graph, claims).from(seeds);
  if (!grown || !accept(*grown)) return;
  std::erase_if(claims, [&](const Claim& claim) { return grown->nodes.contains(*claim.nodes.begin()); });
  claims.push_back(std::move(*grown));
}

std::set<size_t> all_nodes(const Graph& graph) {
  std::set<size_t> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) nodes.insert(i);
  return nodes;
}

}  // namespace

std::vector<const Node*> Claim::members(const Graph& graph) const {
  std::vector<const Node*> found;
  for (const size_t node : nodes) found.push_back(&graph.nodes[node]);
  return found;
}

Values outputs_of(const Graph& graph, const Claim& claim) {
  const auto leaves = [&](const std::string& name) {
    if (graph.outputs.contains(name)) return true;
    const auto users = graph.consumers.find(name);
    return users != graph.consumers.end() && std::any_of(users->second.begin(), users->second.end(),
                                                         [&](size_t user) { return !claim.nodes.contains(user); });
  };
  Values outputs;
  for (const Node* node : claim.members(graph)) {
    for (const OrtValueInfo* value : node->outputs) {
      if (value && leaves(name_of(value))) outputs.push_back(value);
    }
  }
  return outputs;
}

bool is_seed(const Node& node, const Settings& settings) {
  if (is_loop(node)) return true;
  if (node.is("If")) {
    return std::any_of(node.bodies.begin(), node.bodies.end(),
                       [](const auto& branch) { return holds_loop(branch.second); });
  }
  const bool recurrent = node.is("LSTM") || node.is("GRU") || node.is("RNN");
  return recurrent && weights_of(node) >= settings.recurrent_weights;
}

bool has_seeds(const Graph& graph, const Settings& settings) {
  return settings.whole_graphs ||
         std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return is_seed(node, settings); });
}

std::vector<Claim> find_claims(const Graph& graph, const Settings& settings,
                               const std::function<bool(const Claim&)>& accept) {
  std::vector<Claim> claims;
  if (settings.whole_graphs && !graph.nodes.empty()) claim_from(graph, all_nodes(graph), accept, claims);
  if (!claims.empty()) return claims;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const bool claimed =
        std::any_of(claims.begin(), claims.end(), [&](const Claim& claim) { return claim.nodes.contains(i); });
    if (!claimed && is_seed(graph.nodes[i], settings)) claim_from(graph, {i}, accept, claims);
  }
  return claims;
}

}  // namespace treadle::provider
