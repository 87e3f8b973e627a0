#pragma once
// Where the time of runs goes: instruction by instruction, trip by trip. A run with a profile is interpreted whole, so
// that every node has a beginning and an end; results are the same. A run without one does nothing of this.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "plan/program.h"

namespace treadle::exec {

class Profile {
 public:
  // Instructions that are kept one by one, for the trace; later ones are only summed up.
  explicit Profile(size_t max_events = size_t{1} << 20);

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

  // --- for people
  struct Node {
    std::string node, op;  // of a group: its last node, and all operators joined by "+"; glue: the loop, or empty
    std::string loop;      // the innermost one around it; empty outside of loops
    bool is_glue = false;  // copies and jumps around nodes
    int64_t count = 0;
    double ns = 0;  // together
  };
  // Of all runs, those that took longest first.
  std::vector<Node> nodes() const;
  int64_t runs() const { return runs_; }
  double total_ns() const;
  std::string to_text() const;
  std::string to_json() const;
  // Chrome's trace events, which Perfetto shows: loops hold trips, trips hold nodes.
  std::string to_trace() const;

 private:
  struct Event {
    int64_t start_ns, ns, trip;
    uint32_t pc;
    uint32_t plan;
  };
  struct Sum {
    int64_t count = 0;
    double ns = 0;
  };
  struct PlanSums {
    std::shared_ptr<const plan::Program> program;
    std::vector<Sum> sums;  // by instruction
  };
  static constexpr uint32_t kNothing = UINT32_MAX;

  static int64_t clock_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void close(int64_t now);

  size_t max_events_;
  int64_t clock_cost_ns_ = 0;  // of one look at the clock
  int64_t first_ns_ = 0;
  int64_t runs_ = 0;
  int64_t left_out_ = 0;  // events
  uint32_t plan_ = 0;     // of the run that is being recorded
  uint32_t open_ = kNothing;
  int64_t open_ns_ = 0, open_trip_ = 0;
  std::vector<int> loop_of_;  // by instruction: the innermost loop around it, or -1
  std::vector<PlanSums> plans_;
  std::vector<Event> events_;
};

}  // namespace treadle::exec
