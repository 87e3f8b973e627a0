// Estimates of the time that treadle saves by running nodes in place of onnxruntime, from a table of measurements.
#pragma once

#include "claims.h"
#include "graph.h"
#include "settings.h"

namespace treadle::provider {

class Costs {
 public:
  explicit Costs(const Settings& settings) : settings_(settings) {}

  // Nanoseconds saved per run, without the cost of crossing between the libraries. Negative: treadle takes longer, or
  // the node should stay for another reason.
  double saved_by(const Graph& graph, const Node& node) const;
  // Nanoseconds saved per run by all nodes of a claim, with the cost of crossing.
  double saved_by(const Graph& graph, const Claim& claim) const;

 private:
  double saved_by_recurrence(const Graph& graph, const Node& node) const;
  double saved_by_bodies(const Node& node) const;

  const Settings& settings_;
};

}  // namespace treadle::provider
