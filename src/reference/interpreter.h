#pragma once
// The slow obvious evaluator: infer, prepare and run one node at a time with kernels of narrowest_isa(). No planning,
// no rewriting but lowering. Every faster tier is compared with it; constant folding uses it too.

#include <span>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "op/kernel.h"
#include "type/any_value.h"

namespace treadle::reference {

// Types of the outputs of a node without bodies, given its inputs (kNone: left out).
Result<std::vector<Type>> infer_outputs(const ir::NodeInfo& node, std::span<const AnyValue> inputs);

// Asked between nodes and trips whether to go on.
class Guard {
 public:
  // Around what is run.
  int loops = 0;
  virtual Status trip() = 0;  // called before each trip of any loop
  virtual Status step() = 0;  // called before each node

 protected:
  ~Guard() = default;
};

// Evaluates a node without bodies. One value per output; kNone for outputs left out by `wanted` (parallel to outputs,
// empty: all wanted). Uses the kernels of kernels::preferred_isa().
Result<std::vector<AnyValue>> run_node(const ir::NodeInfo& node, std::span<const AnyValue> inputs,
                                       std::span<const bool> wanted = {}, Guard* guard = nullptr);

// Evaluates what a lowering has made, with the kernels of kernels::preferred_isa().
Result<std::vector<AnyValue>> run_lowering(const ir::Graph& graph, std::span<const AnyValue> inputs, Guard* guard);

// Evaluates a whole graph, bodies included, with kernels of narrowest_isa(). `inputs` is parallel to the top region's
// inputs.
Result<std::vector<AnyValue>> run_graph(const ir::Graph& graph, std::span<const AnyValue> inputs,
                                        Guard* guard = nullptr);

}  // namespace treadle::reference
