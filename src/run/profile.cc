#include "run/profile.h"

#include <algorithm>

namespace treadle::run {

std::vector<int> innermost_loops(const plan::Program& program) {
  std::vector<int> loops(program.code.size(), -1);
  // Outer loops have smaller numbers, so inner ones overwrite them. kLoopBegin and kLoopNext belong to the code around
  // a loop.
  for (size_t i = 0; i < program.loops.size(); ++i) {
    const plan::Loop& loop = program.loops[i];
    for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) loops[pc] = static_cast<int>(i);
  }
  return loops;
}

Profile::Profile(size_t runs) {
  constexpr size_t kMaxEvents = size_t{1} << 20, kMaxEventsTogether = size_t{1} << 22;
  max_events_ = std::min(kMaxEvents, kMaxEventsTogether / std::max<size_t>(runs, 1));
  constexpr int kLooks = 64;
  const int64_t begin = clock_ns();
  for (int i = 0; i < kLooks; ++i) clock_ns();
  clock_cost_ns_ = (clock_ns() - begin) / kLooks;
}

void Profile::begin(std::shared_ptr<const plan::Program> program) {
  loop_of_ = innermost_loops(*program);
  Run& run = runs_.emplace_back();
  run.sums.resize(program->code.size());
  run.program = std::move(program);
  open_ = kNothing;
}

void Profile::close(int64_t now) {
  if (open_ == kNothing) return;
  const int64_t ns = std::max<int64_t>(now - open_ns_ - clock_cost_ns_, 0);
  Run& run = runs_.back();
  Sum& sum = run.sums[open_];
  ++sum.count;
  sum.ns += static_cast<double>(ns);
  run.total_ns += static_cast<double>(ns);
  if (run.events.size() < max_events_) {
    run.events.push_back({open_ns_, ns, open_iteration_, open_});
  } else {
    ++run.left_out;
  }
}

void Profile::end() {
  close(clock_ns());
  open_ = kNothing;
}

std::vector<const Profile::Run*> Profile::runs() const {
  std::vector<const Run*> runs;
  for (const Run& run : runs_) runs.push_back(&run);
  return runs;
}

}  // namespace treadle::run
