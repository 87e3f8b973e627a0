#pragma once
// Hashes that identify models by their computation, for data that is saved with one model and read with another.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace treadle::session {

struct Fingerprint {
  // Hash of everything that results depend on: types of inputs and outputs, operators, versions, attributes, order of
  // operands, bodies, types and sizes of constants. Names inside the model, the order of nodes, and nodes that no
  // result needs do not matter.
  uint64_t graph = 0;
  uint64_t weights = 0;  // the same with the contents of constants

  // Hash of the computation of a node outside of bodies, without contents of constants. 0: there is no such node.
  uint64_t node(std::string_view name) const;

  std::vector<std::pair<uint64_t, uint64_t>> nodes;  // hashes of names, sorted, with the nodes' hashes
};

// To be called on the graph as it was read, since rewrites change nodes. Two different models have equal hashes with
// probability 2^-64. The hash does not protect against models that are made to collide.
Fingerprint fingerprint(const ir::Graph& graph);

// Hash of type, sizes and contents. If contents exceed 64 KB, the hash covers 4 KB at the beginning, in the middle and
// at the end, so that loading does not read all weights of a mapped file.
uint64_t fingerprint(const Tensor& tensor);

}  // namespace treadle::session
