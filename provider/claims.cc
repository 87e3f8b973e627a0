#include "claims.h"

#include <algorithm>

#include "growth.h"
#include "regions.h"
#include "seeds.h"

namespace treadle::provider {

namespace {

// Grows a claim from `seeds`. If `accept` takes it, it replaces the claims inside of it.
void claim_from(const Graph& graph, const std::set<size_t>& seeds, const Accept& accept, std::vector<Claim>& claims) {
  std::optional<Claim> grown = Growth(graph, claims).from(seeds);
  if (!grown || !accept(*grown)) return;
  std::erase_if(claims, [&](const Claim& claim) { return grown->nodes.contains(*claim.nodes.begin()); });
  claims.push_back(std::move(*grown));
}

void claim_seeds(const Graph& graph, const Settings& settings, const Accept& accept, std::vector<Claim>& claims) {
  const auto claimed = [&](size_t i) {
    return std::ranges::any_of(claims, [&](const Claim& claim) { return claim.nodes.contains(i); });
  };
  const auto gains = [&](const Claim& claim, const std::set<size_t>& seeds) {
    return settings.recurrent_weights == 0 || std::ranges::all_of(seeds, [&](size_t seed) {
             return !is_recurrent(graph.nodes[seed]) || holds_weights(graph, claim.nodes, graph.nodes[seed]);
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
}

std::set<size_t> all_nodes(const Graph& graph) {
  std::set<size_t> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) nodes.insert(i);
  return nodes;
}

// Regions, or the whole graph if that saves more.
std::vector<std::set<size_t>> candidates(const Graph& graph, const Costs& costs) {
  std::vector<std::set<size_t>> found = regions_of(graph, costs);
  double saved = 0;
  for (const std::set<size_t>& region : found) saved += std::max(costs.saved_by(graph, Claim{region}), 0.0);
  const std::set<size_t> all = all_nodes(graph);
  if (costs.saved_by(graph, Claim{all}) > saved) found.insert(found.begin(), all);
  return found;
}

void claim_regions(const Graph& graph, const Settings& settings, const Accept& accept, std::vector<Claim>& claims) {
  const Costs costs(settings);
  const auto accept_saving = [&](const Claim& claim) { return costs.saved_by(graph, claim) > 0 && accept(claim); };
  const auto claimed = [&](size_t node) {
    return std::ranges::any_of(claims, [&](const Claim& claim) { return claim.nodes.contains(node); });
  };
  for (const std::set<size_t>& region : candidates(graph, costs)) {
    if (std::ranges::none_of(region, claimed)) claim_from(graph, region, accept_saving, claims);
  }
  claim_seeds(graph, settings, accept_saving, claims);  // for regions that treadle does not take whole
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

bool is_wanted(const Graph& graph, const Node& node, const Settings& settings, Claiming claiming) {
  switch (claiming) {
    case Claiming::kAll:
      return true;
    case Claiming::kLoops:
      return is_seed(graph, node, settings);
    case Claiming::kCost:
      return Costs(settings).saved_by(graph, node) >= 0;
  }
  return false;
}

std::vector<Claim> find_claims(const Graph& graph, const Settings& settings, Claiming claiming, const Accept& accept) {
  std::vector<Claim> claims;
  if (claiming == Claiming::kCost) {
    claim_regions(graph, settings, accept, claims);
    return claims;
  }
  if (claiming == Claiming::kAll && !graph.nodes.empty()) claim_from(graph, all_nodes(graph), accept, claims);
  if (claims.empty()) claim_seeds(graph, settings, accept, claims);
  return claims;
}

}  // namespace treadle::provider
