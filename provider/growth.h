// A claim from its first node: as many nodes as it takes for only tensors to cross its border, and what computes
// constants for the claim alone.
#pragma once

#include <optional>
#include <vector>

#include "claims.h"

namespace treadle::provider {

class Growth {
 public:
  // `claims`: those that are there; a new one takes each whole or not at all.
  Growth(const Graph& graph, const std::vector<Claim>& claims);

  // Nothing: a node that would have to be in the claim is another provider's, or a value that is no tensor comes from
  // outside of the graph or goes there.
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
