// What treadle saves of a run when it runs nodes in onnxruntime's place: estimates, from a table of measurements.
#pragma once

#include "claims.h"
#include "graph.h"
#include "settings.h"

namespace treadle::provider {

class Costs {
 public:
  explicit Costs(const Settings& settings) : settings_(settings) {}

  // Nanoseconds of one run, what crossing from one library to the other takes left out. Below 0: treadle takes longer,
  // or the node should stay where it is for another reason.
  double saved_by(const Graph& graph, const Node& node) const;
  // Nanoseconds of one run that all nodes save, what crossing takes included.
  double saved_by(const Graph& graph, const Claim& claim) const;

 private:
  double saved_by_recurrence(const Graph& graph, const Node& node) const;
  double saved_by_bodies(const Node& node) const;

  const Settings& settings_;
};

}  // namespace treadle::provider
