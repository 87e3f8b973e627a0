#pragma once
// Specialises a model's graph for known inputs and runs the passes. The result is ready to be planned.

#include "opt/pipeline.h"
#include "plan/specialize.h"

namespace treadle::session {

// `graph` specialised for these inputs, then rewritten by the passes for planning. The remarks says what all of this
// did to loops. Errors: those of plan::specialize and opt::run_passes.
Result<plan::Specialized> optimize(const ir::Graph& graph, std::span<const plan::InputSpec> inputs,
                                   const opt::PipelineOptions& options);

}  // namespace treadle::session
