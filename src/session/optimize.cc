#include "session/optimize.h"

namespace treadle::session {

Result<plan::Specialized> optimize(const ir::Graph& graph, std::span<const plan::InputKnowledge> inputs,
                                   const opt::PipelineOptions& options) {
  const opt::Pass& read_lists = opt::passes()[opt::pass_named("read-lists").value()];
  const bool reads_lists = opt::is_on(read_lists, options);
  TREADLE_ASSIGN(plan::Specialized made, plan::specialize(graph, inputs,
                                                          {.read_lists = reads_lists,
                                                           .mark_recurrent = options.half_weights,
                                                           .fold_limits = options.fold_limits}));
  if (reads_lists && options.after) options.after(read_lists, *made.graph);
  TREADLE_TRY(opt::run_passes(*made.graph, opt::Stage::kPlanning, options, &made.journal));
  return made;
}

}  // namespace treadle::session
