#pragma once
// Numbers that tell models apart by what they compute, for whatever is saved with one model and read with another.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace treadle::session {

struct Fingerprint {
  // The types of inputs and outputs, and all that results are computed by: operators, versions, attributes, order of
  // operands, bodies, types and sizes of constants. Neither names inside of the model, nor the order of nodes, nor
  // nodes that no result needs change the number.
  uint64_t graph = 0;
  uint64_t weights = 0;  // the same, with the contents of constants

  // Of a node that stands in no body: what it computes, without the contents of constants. 0: there is no such node.
  uint64_t node(std::string_view name) const;

  std::vector<std::pair<uint64_t, uint64_t>> nodes;  // numbers of names, in order, with those of the nodes
};

// Takes the graph as it was read: a rewrite computes the same by other nodes. Two models that differ have different
// numbers but for one pair in 2^64; no number is proof against somebody who wants two of them to agree.
Fingerprint fingerprint(const ir::Graph& graph);

// Of the type, the sizes and the contents. Of more than 64 KB of contents the number covers 4 KB at the beginning, in
// the middle and at the end: a model in a mapped file is loaded without reading all of its weights.
uint64_t fingerprint(const Tensor& tensor);

}  // namespace treadle::session
