#pragma once
// Records the time of each instruction in each iteration, and what the run holds in memory of run-time size meanwhile.
// A run with a profile is interpreted throughout, so that every node has a beginning and an end. Results are the same.
// A run without a profile does no work for it.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/program.h"

namespace treadle::run {

class Frame;
class RunMemory;

class Profile {
 public:
  // `runs`: how many runs will be recorded. The trace keeps the first million events of each run, fewer if there are
  // more than four runs. Later events are only summed up.
  explicit Profile(size_t runs = 1);

  // --- for the interpreter
  // `memory`, `frame`: of the run, until end().
  void begin(std::shared_ptr<const plan::Program> program, const RunMemory& memory, const Frame& frame);
  // `iterations`: gives the current iteration of a loop; called for the innermost loop around the instruction.
  template <class IterationOf>
  void at(uint32_t pc, IterationOf&& iteration_of) {
    const int64_t now = clock_ns();
    close(now);
    open_ = pc;
    const int loop = loop_of_[pc];
    open_iteration_ = loop < 0 ? -1 : iteration_of(static_cast<uint32_t>(loop));
    open_ns_ = clock_ns();  // after the bookkeeping
  }
  void end();

  // --- for reports
  struct Event {
    int64_t start_ns, ns, iteration;
    uint32_t pc;
  };
  struct Sum {
    int64_t count = 0;
    double ns = 0;
    size_t held = 0;  // the most bytes of run-time size that the run held while the instruction ran
  };
  struct Run {
    std::shared_ptr<const plan::Program> program;
    std::vector<Sum> sums;            // by instruction
    std::vector<size_t> value_bytes;  // by slot: the most bytes of a value of run-time size
    double total_ns = 0;
    std::vector<Event> events;
    int64_t left_out = 0;  // events beyond those kept
  };
  // The recorded runs in order; at least one.
  std::vector<const Run*> runs() const;

 private:
  static constexpr uint32_t kNothing = UINT32_MAX;

  static int64_t clock_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void close(int64_t now);
  void look_at_memory();

  size_t max_events_;
  int64_t clock_cost_ns_ = 0;  // cost of one look at the clock
  uint32_t open_ = kNothing;
  int64_t open_ns_ = 0, open_iteration_ = 0;
  size_t open_held_ = 0, peak_ = 0;  // bytes when the open instruction began; the run's peak so far
  const RunMemory* memory_ = nullptr;
  const Frame* frame_ = nullptr;
  std::vector<int> loop_of_;  // by instruction: the innermost loop around it, or -1
  std::vector<Run> runs_;
};

// By instruction: the innermost loop around it, or -1.
std::vector<int> innermost_loops(const plan::Program& program);

}  // namespace treadle::run
