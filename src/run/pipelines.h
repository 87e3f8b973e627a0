#pragma once
// Where a pipeline (plan/pipelines.h) stands. Threads take one block of one stage at a time, whichever is next: the
// stage that they had before, else the first that can go on. So whoever comes brings the pipeline forward, the calling
// thread alone if nobody does.

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "base/status.h"
#include "plan/program.h"
#include "run/team.h"
#include "run/trips.h"

namespace treadle::run {

class PipelineRun {
 public:
  explicit PipelineRun(const plan::Pipeline& pipeline)
      : pipeline_(pipeline),
        stages_(std::make_unique<Stage[]>(pipeline.stages.size())),
        count_(pipeline.stages.size()) {}

  void begin();
  // The stage to work on, which is the caller's until it gives it back; kNone: all are taken, or wait for others.
  static constexpr size_t kNone = SIZE_MAX;
  size_t take(size_t preferred);
  int64_t next_block(size_t stage) const { return stages_[stage].done.load(std::memory_order_relaxed); }
  void give_back(size_t stage);
  // Nothing more is to be begun.
  void stop();
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  bool finished() const { return left_.load(std::memory_order_acquire) == 0; }
  uint32_t events() const { return events_.load(std::memory_order_acquire); }
  // Iterations of all loops so far.
  int64_t made() const;
  // Until something has happened since `seen` was asked for.
  void wait(uint32_t seen) const;

  TeamTrial trial{true};  // whether the pipeline pays
  std::chrono::steady_clock::time_point since;
  bool tells = false;  // what the run takes says something about the way it was run
  Status status;       // of the calling thread, where the run is to end
  int64_t told = 0;    // made(), as the calling thread looked last

 private:
  struct alignas(64) Stage {
    std::atomic<int64_t> done{0};  // blocks
    std::atomic<bool> taken{false};
  };
  bool is_ready(size_t stage) const;
  bool try_take(size_t stage);
  void note() {
    events_.fetch_add(1, std::memory_order_release);
    events_.notify_all();
  }

  const plan::Pipeline& pipeline_;
  std::unique_ptr<Stage[]> stages_;
  size_t count_;
  std::atomic<int64_t> left_{0};  // blocks of all stages
  std::atomic<uint32_t> events_{0};
  std::atomic<bool> stopped_{false};
};

// The pipelines of a program during a run.
class Pipelines {
 public:
  // All must outlive the object.
  Pipelines(const plan::Program& program, Frame& frame, Polls& polls, Loops& loops, Trips& trips);
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  // All of a pipeline, `done`, unless it is better left to its instructions, which find what was wrong.
  Status run(uint32_t index, bool& done);
  // The run is behind it, whichever way it went.
  void end(uint32_t index);

 private:
  void work(uint32_t index, int worker);
  void take_blocks(uint32_t index, int worker);
  Status poll(PipelineRun& at);
  bool run_aside(const std::vector<uint32_t>& instructions);
  bool run_block(const plan::Pipeline& pipeline, size_t stage, int64_t block);
  bool run_trips_until(uint32_t loop, int64_t end);

  const plan::Program& program_;
  Frame& frame_;
  Polls& polls_;
  Loops& loops_;
  Trips& trips_;
  std::vector<std::unique_ptr<PipelineRun>> runs_;
};

}  // namespace treadle::run
