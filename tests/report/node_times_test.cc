// A profile's text about nodes, from made-up times: medians, and which times were interrupted.
#include "report/node_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/plan_cache.h"
#include "session/session.h"

namespace treadle::report {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr double kMs = 1e6;

// Runs of a program with two nodes, Softmax and CumSum, which nothing fuses.
class NodeTimes : public testing::Test {
 protected:
  NodeTimes() {
    const std::string text = R"(<ir_version: 10, opset_import: ["" : 21]>
      g (float[4,64] x) => (float[4,64] z) { zero = Constant<value_int = 0>() y = Softmax(x) z = CumSum(y, zero) })";
    session_ = Session::from_bytes(std::as_bytes(std::span(text))).value();
    planned_ = session_->plan_model().value().program;
    for (uint32_t pc = 0; pc < planned_->code.size(); ++pc) {
      if (is_timed_alone(planned_->code[pc].code)) nodes_.push_back(pc);
    }
  }

  void add_run(double first_ns, double second_ns, int64_t times = 1) {
    run::Profile::Run& run = runs_.emplace_back();
    run.program = planned_;
    run.sums.resize(planned_->code.size());
    run.sums[nodes_.at(0)] = {.count = times, .ns = first_ns};
    run.sums[nodes_.at(1)] = {.count = times, .ns = second_ns};
    run.total_ns = first_ns + second_ns;
  }

  ProfileTimes times() const {
    std::vector<const run::Profile::Run*> runs;
    for (const auto& run : runs_) runs.push_back(&run);
    return times_of(runs);
  }

  std::unique_ptr<Session> session_;
  std::shared_ptr<const plan::Program> planned_;
  std::vector<uint32_t> nodes_;  // instructions
  std::vector<run::Profile::Run> runs_;
};

TEST_F(NodeTimes, AreMediansWithTheirSpread) {
  add_run(3 * kMs, 10 * kMs);
  add_run(1 * kMs, 12 * kMs);
  add_run(2 * kMs, 11 * kMs);
  const ProfileTimes found = times();
  ASSERT_THAT(found.nodes, SizeIs(2));
  EXPECT_EQ(found.nodes[0].op, "CumSum");
  EXPECT_THAT((std::array{found.nodes[0].least_ns, found.nodes[0].ns, found.nodes[0].most_ns}),
              ElementsAre(DoubleEq(10 * kMs), DoubleEq(11 * kMs), DoubleEq(12 * kMs)));
  EXPECT_DOUBLE_EQ(found.nodes[1].ns, 2 * kMs);
  EXPECT_DOUBLE_EQ(found.total_ns, 13 * kMs);
  EXPECT_EQ(found.interrupted_runs, 1U) << "3 ms are more than 2 * 1 ms + 0.5 ms";
}

TEST_F(NodeTimes, EveryRunMayBeInterruptedSomewhere) {
  for (int i = 0; i < 10; ++i) {
    add_run(1 * kMs + (i % 2 == 0 ? 40 * kMs : 0), 2 * kMs + (i % 2 == 1 ? 50 * kMs : 0));
  }
  const ProfileTimes found = times();
  EXPECT_EQ(found.interrupted_runs, 10U);
  EXPECT_DOUBLE_EQ(found.interrupted_ns, 50 * kMs);
  EXPECT_DOUBLE_EQ(found.total_ns, 3 * kMs);
  EXPECT_DOUBLE_EQ(found.nodes[0].most_ns, 2 * kMs);
  EXPECT_DOUBLE_EQ(found.fastest_ns, 43 * kMs);
  EXPECT_EQ(found.shown->total_ns, 43 * kMs);
}

TEST_F(NodeTimes, TheTraceIsOfARunThatNothingInterrupted) {
  add_run(1 * kMs, 90 * kMs);
  add_run(1 * kMs, 2 * kMs);
  add_run(1 * kMs, 1 * kMs);
  EXPECT_EQ(times().shown->total_ns, 3 * kMs);
}

TEST_F(NodeTimes, MoreWorkIsNoInterruption) {
  add_run(1 * kMs, 1 * kMs, 1);
  add_run(9 * kMs, 1 * kMs, 9);
  add_run(9 * kMs, 1 * kMs, 9);
  const ProfileTimes found = times();
  EXPECT_EQ(found.interrupted_runs, 0U);
  EXPECT_DOUBLE_EQ(found.nodes[0].ns, 9 * kMs);
  EXPECT_EQ(found.nodes[0].count, 9);
}

TEST_F(NodeTimes, ShortTimesAreNoInterruptions) {
  add_run(1e3, 1e3);
  add_run(400e3, 1e3);
  EXPECT_EQ(times().interrupted_runs, 0U);
}

}  // namespace
}  // namespace treadle::report
