#pragma once
// Decides from measurements whether threads share the steps of a loop.
//
// Iterations of some microseconds can be spread over threads that stay awake in between (set_team in
// base/thread_pool.h). That pays with free cores and large products, and costs time otherwise; no estimate can tell.
// Results are the same to the bit. So a loop runs both ways for a few stretches and then goes on with the faster way.
// It tries the other way again after ever longer times.

#include <chrono>
#include <cstdint>
#include <vector>

#include "plan/program.h"

namespace treadle::run {

class TeamTrial {
 public:
  // `team`: whether to begin as a team.
  explicit TeamTrial(bool team = false) : team_(team) {}

  bool team() const { return team_; }
  // Reports the time per unit of work of a stretch of about 100 us. Returns whether to go on as a team.
  bool took(double ns_per_unit);

 private:
  static constexpr int kTrial = 3, kFirstHold = 64, kLastHold = 4096;  // stretches

  void change() {
    team_ = !team_;
    wakes_ = true;
  }

  bool team_;
  bool trying_ = false;  // a trial of the other way is running
  bool wakes_ = true;    // the next stretch is not measured, since threads wake up in it
  int left_ = kTrial;
  int hold_ = kFirstHold;
  double ns_[2] = {0, 0};  // alone, as a team
};

// The loops of a program whose steps may be shared, and the one of them that runs. Each poll measures the stretch
// before it.
class LoopTeams {
 public:
  // Must outlive the object.
  explicit LoopTeams(const std::vector<plan::Loop>& loops) : loops_(loops), trials_(loops.size()) {}

  void begin_run() { running_ = kNone; }
  // Between begin() and end(), threads share the steps of `loop` if that is allowed and is measured to pay.
  void begin(uint32_t loop) {
    if (loops_[loop].schedule.may_team) start(loop);
  }
  void end(uint32_t loop) {
    if (running_ == loop) stop();
  }
  // Ends a stretch, and begins one of `units` of work (plan::kPollUnitNs).
  void measure(int64_t units);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  void start(uint32_t loop);
  void stop();

  const std::vector<plan::Loop>& loops_;
  std::vector<TeamTrial> trials_;  // by loop
  uint32_t running_ = kNone;
  int64_t units_ = 0;  // units of the stretch that began at since_; 0: none has begun
  std::chrono::steady_clock::time_point since_;
};

}  // namespace treadle::run
