#pragma once
// The run of a pipeline (plan/pipelines.h). Each thread takes one strip of one stage at a time: the stage that it had
// before if that is ready, else the first stage that is. Any thread can work on any stage, so the calling thread
// finishes alone if no other thread joins.

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "base/status.h"
#include "plan/program.h"
#include "run/loop_runner.h"
#include "run/team.h"

namespace treadle::run {

class PipelineRun {
 public:
  explicit PipelineRun(const plan::Pipeline& pipeline)
      : pipeline_(pipeline),
        stages_(std::make_unique<Stage[]>(pipeline.stages.size())),
        count_(pipeline.stages.size()) {}

  void begin();
  // Takes a stage for the calling thread until give_back(). kNone: all stages are taken, or wait for others.
  static constexpr size_t kNone = SIZE_MAX;
  size_t take(size_t preferred);
  int64_t next_strip(size_t stage) const { return stages_[stage].done.load(std::memory_order_relaxed); }
  void give_back(size_t stage);
  // Tells all threads to begin no further strip.
  void stop();
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  bool finished() const { return left_.load(std::memory_order_acquire) == 0; }
  uint32_t events() const { return events_.load(std::memory_order_acquire); }
  // Iterations of all loops so far.
  int64_t made() const;
  // Waits until there is an event after number `seen` of events().
  void wait(uint32_t seen) const;

  TeamTrial trial{true};  // whether the pipeline pays
  std::chrono::steady_clock::time_point since;
  bool tells = false;    // whether the time of this run says something about the way in which it ran
  Status status;         // error of the calling thread that ends the run
  int64_t reported = 0;  // made(), as of the last poll

 private:
  struct alignas(64) Stage {
    std::atomic<int64_t> done{0};  // strips that are done
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
  std::atomic<int64_t> left_{0};  // strips of all stages that are not done
  std::atomic<uint32_t> events_{0};
  std::atomic<bool> stopped_{false};
};

// The pipelines of a program during a run.
class Pipelines {
 public:
  // All must outlive the object.
  Pipelines(const plan::Program& program, Frame& frame, Polls& polls, Loops& loops, LoopRunner& runner);
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  // Runs a whole pipeline. `done` stays false if its instructions are to run instead: the pipeline does not pay, or
  // something went wrong that the instructions will report.
  Status run(uint32_t index, bool& done);
  // The run has come to the pipeline's end, as a pipeline or by its instructions.
  void end(uint32_t index);

 private:
  void work(uint32_t index, int worker);
  void take_strips(uint32_t index, int worker);
  Status poll(PipelineRun& at);
  bool run_aside(const std::vector<uint32_t>& instructions);
  bool run_strip(const plan::Pipeline& pipeline, size_t stage, int64_t strip);
  bool run_iterations_until(uint32_t loop, int64_t end);

  const plan::Program& program_;
  Frame& frame_;
  Polls& polls_;
  Loops& loops_;
  LoopRunner& runner_;
  std::vector<std::unique_ptr<PipelineRun>> runs_;
};

}  // namespace treadle::run
