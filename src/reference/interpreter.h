#pragma once
// The reference interpreter: infers, prepares and runs one node after the other, with kernels of narrowest_isa(). It
// does not plan, and rewrites nothing except by lowering. Tests compare every faster tier with it; constant folding
// uses it.

#include <span>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "op/kernel.h"
#include "type/any_value.h"

namespace treadle::reference {

// Types of the outputs of a node without bodies, given its inputs (kNone: left out).
Result<std::vector<Type>> infer_outputs(const ir::NodeInfo& node, std::span<const AnyValue> inputs);

// Decides between nodes and iterations whether to go on, and is told of values.
class Guard {
 public:
  // How many loops are around the node that runs.
  int loops = 0;
  virtual Status iteration() = 0;                          // called before each iteration of any loop
  virtual Status step() = 0;                               // called before each node
  virtual void made(const ir::Value&, const AnyValue&) {}  // called for each value of a graph when it is computed or
                                                           // handed to a body

 protected:
  ~Guard() = default;
};

// Evaluates a node without bodies, with the kernels of kernels::preferred_isa(). Returns one value per output.
// `wanted`: parallel to outputs, false for those to leave as kNone; empty: all are wanted.
Result<std::vector<AnyValue>> run_node(const ir::NodeInfo& node, std::span<const AnyValue> inputs,
                                       std::span<const bool> wanted = {}, Guard* guard = nullptr);

// Evaluates the graph of a lowering, with the kernels of kernels::preferred_isa().
Result<std::vector<AnyValue>> run_lowering(const ir::Graph& graph, std::span<const AnyValue> inputs, Guard* guard);

// Evaluates a whole graph, bodies included, with kernels of narrowest_isa(). `inputs` is parallel to the top region's
// inputs.
Result<std::vector<AnyValue>> run_graph(const ir::Graph& graph, std::span<const AnyValue> inputs,
                                        Guard* guard = nullptr);

}  // namespace treadle::reference
