#include "run/pipelines.h"

#include <algorithm>

#include "base/pause.h"
#include "base/thread_pool.h"

namespace treadle::run {

using plan::Loop;
using plan::OpCode;
using plan::Pipeline;
using plan::PipelineStage;

namespace {

// Iterations of all loops of a pipeline together.
int64_t iterations(const Pipeline& pipeline) {
  const auto has_loop = [](const PipelineStage& stage) { return stage.loop != PipelineStage::kNoLoop; };
  return pipeline.iterations * std::count_if(pipeline.stages.begin(), pipeline.stages.end(), has_loop);
}

}  // namespace

// --- choice of the next strip of a stage -----------------------------------------------------------------------------

void PipelineRun::begin() {
  for (size_t s = 0; s < count_; ++s) {
    stages_[s].done.store(0, std::memory_order_relaxed);
    stages_[s].taken.store(false, std::memory_order_relaxed);
  }
  stopped_.store(false, std::memory_order_relaxed);
  left_.store(pipeline_.strips() * static_cast<int64_t>(count_), std::memory_order_relaxed);
}

bool PipelineRun::is_ready(size_t stage) const {
  const int64_t strips = pipeline_.strips();
  const int64_t next = stages_[stage].done.load(std::memory_order_acquire);
  if (next >= strips) return false;
  for (const PipelineStage::Need& need : pipeline_.stages[stage].needs) {
    const int64_t done = stages_[need.stage].done.load(std::memory_order_acquire);
    if (done < (need.all ? strips : next + 1)) return false;
  }
  return true;
}

bool PipelineRun::try_take(size_t stage) {
  Stage& s = stages_[stage];
  if (s.taken.load(std::memory_order_relaxed) || !is_ready(stage)) return false;
  if (s.taken.exchange(true, std::memory_order_acquire)) return false;
  // Another thread may have done the strip that was ready.
  if (is_ready(stage)) return true;
  s.taken.store(false, std::memory_order_release);
  return false;
}

size_t PipelineRun::take(size_t preferred) {
  if (preferred != kNone && try_take(preferred)) return preferred;
  for (size_t s = 0; s < count_; ++s) {
    if (try_take(s)) return s;
  }
  return kNone;
}

void PipelineRun::give_back(size_t stage) {
  stages_[stage].done.fetch_add(1, std::memory_order_release);
  stages_[stage].taken.store(false, std::memory_order_release);
  left_.fetch_sub(1, std::memory_order_release);
  note();
}

void PipelineRun::stop() {
  stopped_.store(true, std::memory_order_relaxed);
  note();
}

int64_t PipelineRun::made() const {
  int64_t sum = 0;
  for (size_t s = 0; s < count_; ++s) {
    if (pipeline_.stages[s].loop == PipelineStage::kNoLoop) continue;
    sum += std::min(stages_[s].done.load(std::memory_order_relaxed) * pipeline_.strip, pipeline_.iterations);
  }
  return sum;
}

void PipelineRun::wait(uint32_t seen) const {
  constexpr int kSpins = 2000;
  for (int i = 0; i < kSpins; ++i) {
    if (events_.load(std::memory_order_acquire) != seen) return;
    pause_cpu();
  }
  events_.wait(seen, std::memory_order_acquire);
}

// --- the work --------------------------------------------------------------------------------------------------------

Pipelines::Pipelines(const plan::Program& program, Frame& frame, Polls& polls, Loops& loops, LoopRunner& runner)
    : program_(program), frame_(frame), polls_(polls), loops_(loops), runner_(runner) {
  for (const Pipeline& pipeline : program.pipelines) runs_.push_back(std::make_unique<PipelineRun>(pipeline));
}

Status Pipelines::run(uint32_t index, bool& done) {
  const Pipeline& pipeline = program_.pipelines[index];
  PipelineRun& at = *runs_[index];
  done = false;
  // With a limit of iterations, they have to be counted in the model's order, which a pipeline does not keep.
  at.tells = !polls_.limits().counts_iterations();
  if (!at.tells) return {};
  at.since = std::chrono::steady_clock::now();
  if (!at.trial.team()) return {};
  for (const PipelineStage& stage : pipeline.stages) {
    if (runner_.native() && stage.loop != PipelineStage::kNoLoop)
      runner_.native()->before_loop(stage.loop, pipeline.iterations);
  }
  if (!run_aside(pipeline.before)) return {};
  at.begin();
  at.status = Status();
  at.reported = 0;
  polls_.progress().begin(at.reported, iterations(pipeline), pipeline.last);
  const int threads = std::min(thread_limit(), static_cast<int>(pipeline.stages.size()));
  struct Call {
    Pipelines* pipelines;
    uint32_t index;
  } call{this, index};
  run_ranges(
      threads, {threads, 0, threads},
      [](void* context, int64_t, int64_t, int worker) {
        const Call& work = *static_cast<Call*>(context);
        work.pipelines->work(work.index, worker);
      },
      &call);
  if (!at.status.ok()) return std::move(at.status);
  at.tells = at.finished();
  // After an error, the instructions run one after the other, meet the error again, and name it.
  if (at.stopped() || !at.finished() || !run_aside(pipeline.after)) return {};
  for (const PipelineStage& stage : pipeline.stages) {
    if (stage.loop == PipelineStage::kNoLoop) continue;
    const Loop& loop = program_.loops[stage.loop];
    runner_.count_lost(stage.loop);
    frame_.release(loop.releases, loop.in_loop);
  }
  polls_.progress().end(iterations(pipeline));
  done = true;
  return {};
}

void Pipelines::end(uint32_t index) {
  PipelineRun& at = *runs_[index];
  if (!at.tells) return;
  at.trial.took(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - at.since).count());
}

// Runs instructions that stand between the stages. False: one of them failed.
bool Pipelines::run_aside(const std::vector<uint32_t>& instructions) {
  for (const uint32_t pc : instructions) {
    const plan::Instruction& in = program_.code[pc];
    uint32_t failed = 0;
    if (in.code == OpCode::kKernel) failed = in.run(in.state, frame_.slots(), in.operands);
    if (in.code == OpCode::kRow) failed = frame_.point_at_row(program_.rows[in.index]);
    if (in.code == OpCode::kCopy) frame_.copy(program_.copies[in.index]);
    if (failed != 0) return false;
  }
  return true;
}

// Never throws: otherwise threads that wait for a strip would wait for ever.
void Pipelines::work(uint32_t index, int worker) {
  PipelineRun& at = *runs_[index];
  try {
    take_strips(index, worker);
  } catch (...) {
    at.stop();  // the instructions meet the error again
  }
}

void Pipelines::take_strips(uint32_t index, int worker) {
  PipelineRun& at = *runs_[index];
  const bool calls = worker == 0;  // whether this is the calling thread, which has to look for signals
  size_t stage = PipelineRun::kNone;
  while (!at.stopped() && !at.finished()) {
    const uint32_t seen = at.events();
    const size_t taken = at.take(stage);
    if (taken == PipelineRun::kNone) {
      if (!at.stopped() && !at.finished()) at.wait(seen);
      continue;
    }
    stage = taken;
    if (calls) at.status = poll(at);
    const bool stops = calls ? !at.status.ok() : polls_.limits().should_stop();
    if (stops || !run_strip(program_.pipelines[index], stage, at.next_strip(stage))) return at.stop();
    at.give_back(stage);
  }
}

Status Pipelines::poll(PipelineRun& at) {
  if (polls_.progress().has_listener()) at.reported = at.made();
  return polls_.poll();
}

bool Pipelines::run_strip(const Pipeline& pipeline, size_t index, int64_t strip) {
  const PipelineStage& stage = pipeline.stages[index];
  const int64_t begin = strip * pipeline.strip, end = std::min(begin + pipeline.strip, pipeline.iterations);
  const bool last = end == pipeline.iterations;
  for (const plan::RowKernel& rows : stage.kernels) {
    if (run_rows(frame_, rows, begin, last) != 0) return false;
  }
  if (stage.loop == PipelineStage::kNoLoop) return true;
  if (begin == 0 && !loops_.begin_stage(stage.loop).ok()) return false;
  if (!run_iterations_until(stage.loop, end)) return false;
  if (last) loops_.end_stage(stage.loop);
  return true;
}

// Runs iterations of a loop of a pipeline up to `end`. The stretch is short, so it does not look at limits.
bool Pipelines::run_iterations_until(uint32_t index, int64_t end) {
  LoopPosition& at = loops_[index];
  const int64_t all = at.iterations;
  at.iterations = std::min(end, all);
  Budget budget{INT64_MAX / 2, 0};
  const plan::Instruction* in = nullptr;
  const bool ran = !loops_.has_iteration(index) || runner_.run(index, budget, in).ok();
  at.iterations = all;
  return ran;
}

}  // namespace treadle::run
