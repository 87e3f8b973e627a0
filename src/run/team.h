#pragma once
// Whether the steps of a loop are shared among threads, decided by what it is measured to take.
//
// Trips of some microseconds can be spread over threads that stay awake in between (set_team in base/thread_pool.h).
// That pays where cores are free and products large, and costs where they are not, and nobody knows ahead. The results
// are the same to the bit. So a loop runs both ways for a few stretches, then the faster way, and ever more rarely
// tries the other again.

#include <chrono>
#include <cstdint>
#include <vector>

#include "plan/program.h"

namespace treadle::run {

class TeamTrial {
 public:
  // What it begins with.
  explicit TeamTrial(bool team = false) : team_(team) {}

  bool team() const { return team_; }
  // A stretch of about 100 us took so long per unit of work. Returns how to go on.
  bool took(double ns_per_unit);

 private:
  static constexpr int kTrial = 3, kFirstHold = 64, kLastHold = 4096;  // stretches

  void change() {
    team_ = !team_;
    wakes_ = true;
  }

  bool team_;
  bool trying_ = false;  // the way that was not taken before
  bool wakes_ = true;    // the first stretch after a change tells nothing
  int left_ = kTrial;
  int hold_ = kFirstHold;
  double ns_[2] = {0, 0};  // alone, as a team
};

// The loops of a program whose steps may be shared, and the one of them that runs. Each poll measures what the stretch
// before it has taken.
class LoopTeams {
 public:
  // Must outlive the object.
  explicit LoopTeams(const std::vector<plan::Loop>& loops) : loops_(loops), trials_(loops.size()) {}

  void begin_run() { running_ = kNone; }
  // From begin() to end() the steps of `loop` are shared, where that may be and is measured to pay.
  void begin(uint32_t loop) {
    if (loops_[loop].schedule.may_team) start(loop);
  }
  void end(uint32_t loop) {
    if (running_ == loop) stop();
  }
  // A stretch of `units` of work begins (plan::kPollUnitNs), and one before it ends.
  void measure(int64_t units);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  void start(uint32_t loop);
  void stop();

  const std::vector<plan::Loop>& loops_;
  std::vector<TeamTrial> trials_;  // by loop
  uint32_t running_ = kNone;
  int64_t units_ = 0;  // of the stretch that began at since_; 0: none did
  std::chrono::steady_clock::time_point since_;
};

}  // namespace treadle::run
