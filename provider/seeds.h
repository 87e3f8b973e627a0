// Nodes for which treadle is best: loops, recurrent operators, and an If with one of them in a branch.
#pragma once

#include "graph.h"
#include "settings.h"

namespace treadle::provider {

bool is_loop(const Node& node);
bool is_recurrent(const Node& node);

// The number of weights of a recurrent operator; 0 unless all are the same in every run.
int64_t fixed_weights(const Graph& graph, const Node& node);
// Whether the weights of a recurrent operator are constants or made by `nodes`. Other weights would be packed in every
// run, which costs more than treadle gains.
bool holds_weights(const Graph& graph, const std::set<size_t>& nodes, const Node& node);
// Whether it is an RNN with one step and one entry and no initial state: onnxruntime omits the product with the state,
// which is most of its work.
bool is_single_step(const Node& node);

// Whether treadle has a reason to run a node, whatever surrounds it.
bool is_seed(const Graph& graph, const Node& node, const Settings& settings);

// The first seed, and further seeds that it reaches through nodes that only move elements, as in stacked layers.
std::set<size_t> chain_from(const Graph& graph, const Settings& settings, size_t first);
// Whether a node only moves elements.
bool moves(const Node& node);

}  // namespace treadle::provider
