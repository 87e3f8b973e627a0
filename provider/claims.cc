#include "claims.h"

#include <algorithm>
#include <array>

#include "growth.h"
#include "types.h"

namespace treadle::provider {

namespace {

bool is_loop(const Node& node) {
  return node.is("Loop") || node.is("Scan");
}

bool is_recurrent(const Node& node) {
  return node.is("LSTM") || node.is("GRU") || node.is("RNN");
}

// The weights of a recurrent operator, of the input and of the state; NULL: left out.
std::array<const OrtValueInfo*, 2> weights_of(const Node& node) {
  const auto input = [&](size_t i) { return i < node.inputs.size() ? node.inputs[i] : nullptr; };
  return {input(1), input(2)};
}

// Of weights that are the same in every run; else 0.
int64_t fixed_weights(const Graph& graph, const Node& node) {
  int64_t elements = 0;
  for (const OrtValueInfo* value : weights_of(node)) {
    if (!value || !graph.is_fixed(value)) return 0;
    elements += elements_of(type_of(value));
  }
  return elements;
}

// Weights that come from outside would be packed in every run, which costs more than treadle gains.
bool holds_weights(const Graph& graph, const Claim& claim, const Node& node) {
  return std::ranges::all_of(weights_of(node), [&](const OrtValueInfo* value) {
    const auto producer = graph.producers.find(name_of(value));
    return producer == graph.producers.end() || claim.nodes.contains(producer->second);
  });
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

bool runs_loop(const Node& node) {
  return is_loop(node) || (node.is("If") && std::any_of(node.bodies.begin(), node.bodies.end(),
                                                        [](const auto& branch) { return holds_loop(branch.second); }));
}

bool is_seed(const Graph& graph, const Node& node, const Settings& settings) {
  if (is_recurrent(node)) return fixed_weights(graph, node) >= settings.recurrent_weights;
  return runs_loop(node);
}

bool has_seeds(const Graph& graph, const Settings& settings) {
  return settings.whole_graphs || std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                              [&](const Node& node) { return is_seed(graph, node, settings); });
}

std::vector<Claim> find_claims(const Graph& graph, const Settings& settings,
                               const std::function<bool(const Claim&)>& accept) {
  std::vector<Claim> claims;
  if (settings.whole_graphs && !graph.nodes.empty()) claim_from(graph, all_nodes(graph), accept, claims);
  if (!claims.empty()) return claims;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const bool claimed =
        std::any_of(claims.begin(), claims.end(), [&](const Claim& claim) { return claim.nodes.contains(i); });
    if (claimed || !is_seed(graph, node, settings)) continue;
    const bool needs_weights = is_recurrent(node) && settings.recurrent_weights > 0;
    const auto accept_seed = [&](const Claim& claim) {
      return (!needs_weights || holds_weights(graph, claim, node)) && accept(claim);
    };
    claim_from(graph, {i}, accept_seed, claims);
  }
  return claims;
}

}  // namespace treadle::provider
