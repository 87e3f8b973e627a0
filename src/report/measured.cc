#include "report/measured.h"

#include <algorithm>
#include <chrono>

#include "report/iterations.h"

namespace treadle::report {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kRuns = 3;
constexpr double kMostSeconds = 10;                                // limit of a run
constexpr std::chrono::seconds kEnough = std::chrono::seconds(1);  // no further run begins after this

// 0 if a run fails.
double fastest_run_ns(const Session& session, std::span<const Feed> feeds) {
  RunOptions options;
  options.time_limit_s = kMostSeconds;
  double fastest = 0;
  const Clock::time_point first = Clock::now();
  for (size_t i = 0; i < kRuns && Clock::now() - first < kEnough; ++i) {
    std::vector<AnyValue> results;
    const Clock::time_point begin = Clock::now();
    if (!session.run(feeds, {}, results, options).ok()) return 0;
    const double took = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    fastest = i == 0 ? took : std::min(fastest, took);
  }
  return fastest;
}

}  // namespace

std::optional<Measured> Measured::run(const Session& session, std::span<const Feed> feeds,
                                      const plan::Program& program) {
  run::Profile profile(kRuns);
  RunOptions options;
  options.profile = &profile;
  options.time_limit_s = kMostSeconds;
  const Clock::time_point begin = Clock::now();
  for (size_t i = 0; i < kRuns && Clock::now() - begin < kEnough; ++i) {
    std::vector<AnyValue> results;
    if (!session.run(feeds, {}, results, options).ok()) return std::nullopt;
  }
  Measured made;
  made.ns_.resize(program.code.size());
  for (const run::Profile::Run* run : profile.runs()) {
    if (run->program.get() != &program) return std::nullopt;
    for (size_t pc = 0; pc < made.ns_.size(); ++pc) {
      made.ns_[pc] = run == profile.runs().front() ? run->sums[pc].ns : std::min(made.ns_[pc], run->sums[pc].ns);
    }
  }
  made.iterations_ = iterations_of(*profile.runs().back());
  made.run_ns_ = fastest_run_ns(session, feeds);
  return made;
}

double Measured::iterations_each_time(uint32_t loop) const {
  const run::LoopCount& count = iterations_.loops[loop];
  return count.times == 0 ? -1 : static_cast<double>(count.iterations) / static_cast<double>(count.times);
}

double Measured::ns(uint32_t pc, uint32_t loop) const {
  return ns_[pc] / static_cast<double>(std::max<int64_t>(iterations(loop), 1));
}

}  // namespace treadle::report
