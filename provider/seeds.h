// Nodes that treadle was made for: loops, recurrent operators, and an If with one of them in a branch.
#pragma once

#include "graph.h"
#include "settings.h"

namespace treadle::provider {

bool is_loop(const Node& node);
bool is_recurrent(const Node& node);

// How many elements the weights of a recurrent operator have that are the same in every run; 0 where some are not.
int64_t fixed_weights(const Graph& graph, const Node& node);
// Whether the weights of a recurrent operator are constants or made by `nodes`. Others would be packed in every run,
// which costs more than treadle gains.
bool holds_weights(const Graph& graph, const std::set<size_t>& nodes, const Node& node);
// An RNN of one step of one entry without a state before it: onnxruntime leaves out the product with the state, which
// is most of it.
bool is_single_step(const Node& node);

// Whether treadle has a reason to run a node, whatever surrounds it.
bool is_seed(const Graph& graph, const Node& node, const Settings& settings);

// The first seed, and those that it leads to through nothing but moves, as layers are stacked.
std::set<size_t> chain_from(const Graph& graph, const Settings& settings, size_t first);
// Whether a node computes nothing.
bool moves(const Node& node);

}  // namespace treadle::provider
