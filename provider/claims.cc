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

// An RNN of one step of one entry without a state before it: onnxruntime leaves out the product with the state, which
// is most of it.
bool is_single_step(const Node& node) {
  constexpr size_t kInitialState = 5;
  if (!node.is("RNN") || (node.inputs.size() > kInitialState && node.inputs[kInitialState])) return false;
  const std::vector<int64_t> dims = dims_of(type_of(node.inputs[0]));
  return dims.size() == 3 && dims[0] == 1 && dims[1] == 1;
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

// Whether a node computes nothing.
bool moves(const Node& node) {
  constexpr const char* kMoves[] = {"Concat", "Flatten", "Identity",  "Reshape",  "Slice",
                                    "Split",  "Squeeze", "Transpose", "Unsqueeze"};
  return std::ranges::any_of(kMoves, [&](const char* name) { return node.is(name); });
}

// The first seed, and those that it leads to through nothing but moves, as layers are stacked.
std::set<size_t> chain_from(const Graph& graph, const Settings& settings, size_t first) {
  std::set<size_t> seeds{first}, seen{first};
  std::vector<size_t> waiting{first};
  while (!waiting.empty()) {
    const Node& node = graph.nodes[waiting.back()];
    waiting.pop_back();
    for (const OrtValueInfo* value : node.outputs) {
      const auto users = graph.consumers.find(name_of(value));
      if (users == graph.consumers.end()) continue;
      for (const size_t user : users->second) {
        const bool seed = is_seed(graph, graph.nodes[user], settings);
        if (!(seed || moves(graph.nodes[user])) || !seen.insert(user).second) continue;
        if (seed) seeds.insert(user);
        waiting.push_back(user);
      }
    }
  }
  return seeds;
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
  if (is_recurrent(node) && settings.recurrent_weights > 0) {
    return fixed_weights(graph, node) >= settings.recurrent_weights && !is_single_step(node);
  }
  if (is_recurrent(node)) return true;
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
  const auto claimed = [&](size_t i) {
    return std::ranges::any_of(claims, [&](const Claim& claim) { return claim.nodes.contains(i); });
  };
  const auto gains = [&](const Claim& claim, const std::set<size_t>& seeds) {
    return settings.recurrent_weights == 0 || std::ranges::all_of(seeds, [&](size_t seed) {
             return !is_recurrent(graph.nodes[seed]) || holds_weights(graph, claim, graph.nodes[seed]);
           });
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (claimed(i) || !is_seed(graph, graph.nodes[i], settings)) continue;
    const std::set<size_t> chain = chain_from(graph, settings, i);
    const auto accept_chain = [&](const Claim& claim) {
      const bool whole = std::ranges::all_of(claim.nodes, [&](size_t node) {
        return chain.contains(node) || graph.fixed.contains(node) || moves(graph.nodes[node]);
      });
      return whole && gains(claim, chain) && accept(claim);
    };
    const auto accept_seed = [&](const Claim& claim) { return gains(claim, {i}) && accept(claim); };
    if (chain.size() > 1) claim_from(graph, chain, accept_chain, claims);
    if (!claimed(i)) claim_from(graph, {i}, accept_seed, claims);
  }
  return claims;
}

}  // namespace treadle::provider
