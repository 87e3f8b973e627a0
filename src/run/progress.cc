#include "run/progress.h"

namespace treadle::run {

const RunOptions& Progress::begin_run(const RunOptions& options) {
  made_ = nullptr;
  ended_ = 0;
  end_ = 0;
  if (!options.progress) {
    caller_.progress = nullptr;
    return options;  // NOLINT(bugprone-return-const-ref-from-parameter): the caller hands it on at once
  }
  next_ = {};
  caller_ = watched_ = options;
  watched_.interrupted = report;
  watched_.interrupted_context = this;
  return watched_;
}

bool Progress::report(void* progress) {
  Progress& self = *static_cast<Progress*>(progress);
  const RunOptions& caller = self.caller_;
  if (caller.interrupted && caller.interrupted(caller.interrupted_context)) return true;
  const auto now = Limits::Clock::now();
  if (now < self.next_) return false;
  self.next_ = now + kReportInterval;
  return caller.progress(caller.progress_context, self.done(), self.total());
}

int64_t Progress::total() const {
  int64_t sum = ended_;
  const auto add = [&](int64_t iterations) {
    return iterations >= 0 && !__builtin_add_overflow(sum, iterations, &sum);
  };
  if (!program_ || (made_ && !add(total_))) return -1;
  for (const plan::Loop& loop : program_->loops) {
    if (!loop.in_loop && loop.first >= end_ && !add(plan::planned_iterations(*program_, loop))) return -1;
  }
  return sum;
}

Status Progress::report_end() const {
  if (!caller_.progress(caller_.progress_context, done(), done())) return {};
  return error(Code::kCancelled, "the run was interrupted");
}

}  // namespace treadle::run
