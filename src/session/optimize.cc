#include "session/optimize.h"

namespace treadle::session {

Result<plan::Specialized> optimize(const ir::Graph& graph, std::span<const plan::InputSpec> inputs,
                                   const opt::PipelineOptions& options) {
  TREADLE_ASSIGN(plan::Specialized made, plan::specialize(graph, inputs, options));
  TREADLE_TRY(opt::run_passes(*made.graph, opt::Stage::kPlanning, options, &made.remarks));
  return made;
}

}  // namespace treadle::session
