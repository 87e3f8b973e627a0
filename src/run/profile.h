#pragma once
// Records where the time of runs goes: instruction by instruction, trip by trip. A run with a profile is interpreted
// whole, so that every node has a beginning and an end; results are the same. A run without one does nothing of this.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/program.h"

namespace treadle::run {

class Profile {
 public:
  // `runs`: so many are going to be recorded. The first million instructions of each are kept one by one, for the
  // trace, fewer where there are more than four runs; later ones are only summed up.
  explicit Profile(size_t runs = 1);

  // --- for the interpreter
  void begin(std::shared_ptr<const plan::Program> program);
  // `trips`: of a loop, where it stands; asked for the innermost loop around the instruction.
  template <class TripOf>
  void at(uint32_t pc, TripOf&& trip_of) {
    const int64_t now = clock_ns();
    close(now);
    open_ = pc;
    const int loop = loop_of_[pc];
    open_trip_ = loop < 0 ? -1 : trip_of(static_cast<uint32_t>(loop));
    open_ns_ = clock_ns();
  }
  void end();

  // --- for reports
  struct Event {
    int64_t start_ns, ns, trip;
    uint32_t pc;
  };
  struct Sum {
    int64_t count = 0;
    double ns = 0;
  };
  struct Run {
    std::shared_ptr<const plan::Program> program;
    std::vector<Sum> sums;  // by instruction
    double total_ns = 0;
    std::vector<Event> events;
    int64_t left_out = 0;  // events
  };
  // In the order in which they were made; at least one.
  std::vector<const Run*> runs() const;

 private:
  static constexpr uint32_t kNothing = UINT32_MAX;

  static int64_t clock_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void close(int64_t now);

  size_t max_events_;
  int64_t clock_cost_ns_ = 0;  // of one look at the clock
  uint32_t open_ = kNothing;
  int64_t open_ns_ = 0, open_trip_ = 0;
  std::vector<int> loop_of_;  // by instruction: the innermost loop around it, or -1
  std::vector<Run> runs_;
};

// By instruction: the innermost loop around it, or -1.
std::vector<int> innermost_loops(const plan::Program& program);

}  // namespace treadle::run
