#pragma once
// Specialises a graph to known inputs: types and known contents are propagated, known conditions choose their branch,
// constants are folded, operators are lowered. Planning walks the result.

#include <memory>
#include <span>

#include "infer/inference.h"
#include "ir/graph.h"
#include "opt/pipeline.h"
#include "opt/remarks.h"

namespace treadle::plan {

// Facts about an input before a run. Parallel to the graph's inputs.
struct InputSpec {
  Type type;        // with known sizes, or symbols where sizes vary
  Tensor contents;  // defined(): the contents of this input are fixed too
  Dim length = {};  // of a sequence: its length, known or a symbol, if all its elements have the shape in `type`
};

// Pairs of values of the model by their origins (ir::Value::origin): the first is replaced by the second, which has the
// same contents.
using SameOrigins = std::vector<std::pair<uint32_t, uint32_t>>;

struct Specialized {
  std::unique_ptr<ir::Graph> graph;  // types and constants as known for these inputs
  opt::Remarks remarks = {};         // about changes of loops
  SameOrigins same = {};
};

// Types, contents and chosen branches only: operators stay as in the model.
Result<std::unique_ptr<ir::Graph>> decide(const ir::Graph& graph, std::span<const InputSpec> inputs);

// Whether every node accepts the sizes of `inputs`, as planning for exactly these sizes would find. A plan for any
// sizes cannot check that: a lowering replaces a node by simpler nodes, and their sizes may fit each other although the
// node's do not. Nodes of an undecided If are left to the run, except nodes that a lowering replaces. Errors: the error
// of a node, or of a limit.
struct SizesTaken {
  bool unknown_in_part = false;  // some sizes of a lowered node are unknown before the run
};
Result<SizesTaken> check_sizes(const ir::Graph& graph, std::span<const InputSpec> inputs,
                               const reference::FoldLimits& limits);

// Also runs the passes of the stages kLowering and kSpecializing. Nodes without readers stay.
Result<Specialized> specialize(const ir::Graph& graph, std::span<const InputSpec> inputs,
                               const opt::PipelineOptions& options);

}  // namespace treadle::plan
