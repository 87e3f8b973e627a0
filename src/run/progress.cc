#include "run/progress.h"

#include <algorithm>

namespace treadle::run {

namespace {

// Iterations of a loop that has not begun; -1 if unknown.
int64_t expected_trips(const plan::Program& program, const plan::Loop& loop) {
  if (loop.known_trips >= 0) return loop.known_trips;
  if (loop.trip_count == plan::kNoSlot || loop.continues != plan::kNoSlot) return -1;
  const plan::Slot& count = program.slots[loop.trip_count];
  return count.storage == plan::Storage::kConstant ? std::max<int64_t>(*count.constant.data<int64_t>(), 0) : -1;
}

}  // namespace

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
  const auto add = [&](int64_t trips) { return trips >= 0 && !__builtin_add_overflow(sum, trips, &sum); };
  if (!program_ || (made_ && !add(total_))) return -1;
  for (const plan::Loop& loop : program_->loops) {
    if (!loop.in_loop && loop.first >= end_ && !add(expected_trips(*program_, loop))) return -1;
  }
  return sum;
}

Status Progress::report_end() const {
  if (!caller_.progress(caller_.progress_context, done(), done())) return {};
  return error(Code::kCancelled, "the run was interrupted");
}

}  // namespace treadle::run
