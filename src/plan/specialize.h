#pragma once
// A graph for known inputs: types and contents as far as they are known are carried through, known conditions choose
// their branch, what can be computed is computed, operators are lowered. The result is what planning walks.

#include <memory>
#include <span>

#include "infer/inference.h"
#include "ir/graph.h"
#include "opt/pipeline.h"
#include "opt/remarks.h"

namespace treadle::plan {

// What is known of the inputs of a run before it. Parallel to the graph's inputs.
struct InputSpec {
  Type type;        // with known sizes, or symbols where sizes vary
  Tensor contents;  // defined(): this input's contents are fixed as well
  Dim length = {};  // of a list: known, or a symbol, where all its elements have the shape that `type` says
};

struct Specialized {
  std::unique_ptr<ir::Graph> graph;  // types and constants as known for these inputs
  opt::Remarks remarks = {};         // of what was done to loops
};

// Types, contents and chosen branches only: every operator that stays is as the model has it.
Result<std::unique_ptr<ir::Graph>> decide(const ir::Graph& graph, std::span<const InputSpec> inputs);

// Whether every node takes the sizes of `inputs`, as planning for just these sizes sees it. A plan for any sizes cannot
// ask: a lowering writes simpler nodes in the place of a node, and their sizes may fit each other where those of the
// node do not. Nodes of an undecided If are left to the run, except those that a lowering replaces. Errors: that of a
// node, or of a limit.
struct SizesTaken {
  bool unknown_in_part = false;  // only the run can tell the sizes of something that is lowered
};
Result<SizesTaken> check_sizes(const ir::Graph& graph, std::span<const InputSpec> inputs,
                               const reference::FoldLimits& limits);

// Runs the passes of the stages kLowering and kSpecializing as well. Nodes that nothing reads any more are still there.
Result<Specialized> specialize(const ir::Graph& graph, std::span<const InputSpec> inputs,
                               const opt::PipelineOptions& options);

}  // namespace treadle::plan
