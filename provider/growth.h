// Grows a claim from its first node: it takes nodes until only tensors cross its border, and nodes that compute
// constants for the claim alone.
#pragma once

#include <optional>
#include <vector>

#include "claims.h"

namespace treadle::provider {

class Growth {
 public:
  // `claims`: existing ones; a new claim takes each of them whole or not at all.
  Growth(const Graph& graph, const std::vector<Claim>& claims);

  // No value: a node that the claim needs belongs to another provider, or a value that is not a tensor enters or leaves
  // the graph.
  std::optional<Claim> from(const std::set<size_t>& seeds);

 private:
  using Neighbours = std::vector<std::set<size_t>>;

  bool add(size_t node);
  bool close_inputs(const Node& node);
  bool close_outputs(const Node& node);
  bool close_paths();
  bool close_fixed(const Node& node);
  bool serves_claim(size_t node) const;
  std::set<size_t> reachable(const Neighbours& neighbours) const;
  const std::set<size_t>* claim_of(size_t node) const;

  const Graph& graph_;
  const std::vector<Claim>& claims_;
  Neighbours before_, behind_;
  std::set<size_t> nodes_;
};

}  // namespace treadle::provider
