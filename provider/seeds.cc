#include "seeds.h"

#include <algorithm>
#include <array>

#include "types.h"

namespace treadle::provider {

namespace {

// The weights of a recurrent operator for input and state; NULL: left out.
std::array<const OrtValueInfo*, 2> weights_of(const Node& node) {
  const auto input = [&](size_t i) { return i < node.inputs.size() ? node.inputs[i] : nullptr; };
  return {input(1), input(2)};
}

bool holds_seed(const OrtGraph* body, const Settings& settings) {
  const Graph graph(body);
  return std::ranges::any_of(graph.nodes, [&](const Node& node) { return is_seed(graph, node, settings); });
}

}  // namespace

bool is_loop(const Node& node) {
  return node.is("Loop") || node.is("Scan");
}

bool is_recurrent(const Node& node) {
  return node.is("LSTM") || node.is("GRU") || node.is("RNN");
}

int64_t fixed_weights(const Graph& graph, const Node& node) {
  int64_t elements = 0;
  for (const OrtValueInfo* value : weights_of(node)) {
    if (!value || !graph.is_fixed(value)) return 0;
    elements += elements_of(type_of(value));
  }
  return elements;
}

bool holds_weights(const Graph& graph, const std::set<size_t>& nodes, const Node& node) {
  return std::ranges::all_of(weights_of(node), [&](const OrtValueInfo* value) {
    const auto producer = graph.producers.find(name_of(value));
    return producer == graph.producers.end() || nodes.contains(producer->second);
  });
}

bool is_single_step(const Node& node) {
  constexpr size_t kInitialState = 5;
  if (!node.is("RNN") || (node.inputs.size() > kInitialState && node.inputs[kInitialState])) return false;
  const std::vector<int64_t> dims = dims_of(type_of(node.inputs[0]));
  return dims.size() == 3 && dims[0] == 1 && dims[1] == 1;
}

bool is_seed(const Graph& graph, const Node& node, const Settings& settings) {
  if (is_recurrent(node) && settings.recurrent_weights > 0) {
    return fixed_weights(graph, node) >= settings.recurrent_weights && !is_single_step(node);
  }
  if (is_recurrent(node) || is_loop(node)) return true;
  return node.is("If") &&
         std::ranges::any_of(node.bodies, [&](const auto& branch) { return holds_seed(branch.second, settings); });
}

bool moves(const Node& node) {
  constexpr const char* kMoves[] = {"Concat", "Flatten", "Identity",  "Reshape",  "Slice",
                                    "Split",  "Squeeze", "Transpose", "Unsqueeze"};
  return std::ranges::any_of(kMoves, [&](const char* name) { return node.is(name); });
}

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

}  // namespace treadle::provider
