// When a run checks its limits.
#include "run/polls.h"

#include <gtest/gtest.h>

#include <atomic>

namespace treadle::run {
namespace {

struct PollsTest : testing::Test {
  plan::Program program;
  Polls polls{program};
};

TEST_F(PollsTest, AsksOncePerStretchOfWork) {
  polls.begin({}, {});
  Budget& budget = polls.budget();
  ASSERT_TRUE(polls.count_iteration(1, budget).ok());
  EXPECT_EQ(budget.units, plan::kPollUnits) << "the first iteration looks at the limits";
  for (int64_t i = 0; i < plan::kPollUnits; ++i) ASSERT_TRUE(polls.count_iteration(1, budget).ok());
  EXPECT_EQ(budget.units, 0);
  ASSERT_TRUE(polls.count_iteration(1, budget).ok());
  EXPECT_EQ(budget.units, plan::kPollUnits);
  EXPECT_EQ(budget.iterations, plan::kPollUnits + 2);
}

TEST_F(PollsTest, GrantsNoMoreThanTheLimitOfIterations) {
  RunOptions limited;
  limited.iteration_limit = 3;
  polls.begin(limited, {});
  Budget& budget = polls.budget();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(polls.count_iteration(1, budget).ok()) << i;
  EXPECT_EQ(polls.count_iteration(1, budget).code(), Code::kLimit);
}

TEST_F(PollsTest, CountsBytesOfNodesOfDynamicShape) {
  std::atomic<bool> cancel = true;
  RunOptions cancelled;
  cancelled.cancel = &cancel;
  polls.begin(cancelled, {});
  EXPECT_TRUE(polls.charge(1).ok()) << "too little to look";
  const double poll_ns = static_cast<double>(plan::kPollUnits) * plan::kPollUnitNs;
  EXPECT_EQ(polls.charge(static_cast<size_t>(poll_ns / costs::kDynamicByteNs)).code(), Code::kCancelled);
}

}  // namespace
}  // namespace treadle::run
