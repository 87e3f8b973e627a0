#include "session/optimize.h"

namespace treadle::session {

Result<plan::Specialized> optimize(const ir::Graph& graph, std::span<const plan::InputSpec> inputs,
                                   const opt::PipelineOptions& options) {
  const opt::Pass& read_sequences = opt::passes()[opt::pass_named("read-sequences").value()];
  const bool reads_sequences = opt::is_on(read_sequences, options);
  TREADLE_ASSIGN(plan::Specialized made, plan::specialize(graph, inputs,
                                                          {.asks_in_run = options.asks_in_run,
                                                           .read_sequences = reads_sequences,
                                                           .mark_recurrent = options.half_weights,
                                                           .fold_limits = options.fold_limits}));
  if (reads_sequences && options.after) options.after(read_sequences, *made.graph);
  TREADLE_TRY(opt::run_passes(*made.graph, opt::Stage::kPlanning, options, &made.remarks));
  return made;
}

}  // namespace treadle::session
