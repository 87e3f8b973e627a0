// The walk (stream/time_walk.h) runs once to count frames, from which the ends of blocks follow, then once for each
// phase. A walk asks for states in the same order in every phase.
#include "stream/block_graphs.h"

#include "opt/passes.h"
#include "stream/time_walk.h"

namespace treadle::stream {

namespace {

struct Walked {
  std::unique_ptr<ir::Graph> graph;
  std::unique_ptr<TimeWalk> walk;
};

Result<Walked> walk(const ir::Graph& graph, const std::vector<TimedInput>& timed,
                    const std::vector<std::string_view>& carried, Phase phase, Lattice lattice) {
  Walked walked;
  walked.graph = graph.clone();
  walked.walk = std::make_unique<TimeWalk>(*walked.graph, phase, lattice);
  TREADLE_TRY(walked.walk->run(timed, carried));
  if (phase == Phase::kAnalyse) return walked;
  opt::remove_dead_nodes(*walked.graph);
  const Status status = ir::verify(*walked.graph);
  if (!status.ok()) return error(Code::kInternal, "a graph for blocks is not sound: {}", status.to_string());
  return walked;
}

}  // namespace

Result<Streamed> stream_over_time(const ir::Graph& graph, const std::vector<TimedInput>& timed,
                                  const std::vector<std::string_view>& carried) {
  TREADLE_ASSIGN(const Walked counted, walk(graph, timed, carried, Phase::kAnalyse, {}));
  TREADLE_ASSIGN(const Lattice lattice, counted.walk->counts().solve());
  TREADLE_ASSIGN(Walked start, walk(graph, timed, carried, Phase::kStart, lattice));
  TREADLE_ASSIGN(Walked steady, walk(graph, timed, carried, Phase::kSteady, lattice));
  TREADLE_ASSIGN(Walked last, walk(graph, timed, carried, Phase::kLast, lattice));
  Streamed streamed;
  streamed.hop = lattice.hop;
  streamed.first = lattice.first;
  streamed.delay = steady.walk->delay();
  streamed.outputs = steady.walk->outputs();
  streamed.running = steady.walk->running();
  streamed.begins_with_zeros = steady.walk->begins_with_zeros();
  for (const TimeWalk::State& s : steady.walk->states()) streamed.states.push_back(s.name);
  streamed.start = std::move(start.graph);
  streamed.steady = std::move(steady.graph);
  streamed.last = std::move(last.graph);
  return streamed;
}

}  // namespace treadle::stream
