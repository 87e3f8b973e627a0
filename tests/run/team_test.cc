#include "run/team.h"

#include <gtest/gtest.h>

namespace treadle::run {
namespace {

// Runs of `count` units as a team, for units that take these times alone and in a team.
int team_stretches(TeamTrial& trial, int count, double alone, double team) {
  int shared = 0;
  for (int i = 0; i < count; ++i) {
    shared += trial.team();
    trial.took(trial.team() ? team : alone);
  }
  return shared;
}

TEST(TeamTrial, TakesTheFasterWay) {
  TeamTrial gains, loses;
  EXPECT_GT(team_stretches(gains, 1000, 10, 6), 900);
  EXPECT_LT(team_stretches(loses, 1000, 6, 10), 50);
}

TEST(TeamTrial, StaysAloneWhereItMakesNoDifference) {
  TeamTrial trial;
  EXPECT_LT(team_stretches(trial, 1000, 10, 9.9), 50);
}

TEST(TeamTrial, TriesATeamMoreRarelyWhenItDoesNotPay) {
  TeamTrial trial;
  team_stretches(trial, 20'000, 6, 10);
  EXPECT_LT(team_stretches(trial, 20'000, 6, 10), 50);
}

TEST(TeamTrial, NoticesThatTheOtherCoresBecameFree) {
  TeamTrial trial;
  EXPECT_LT(team_stretches(trial, 500, 10, 20), 50);
  EXPECT_GT(team_stretches(trial, 2000, 10, 6), 1000);
}

TEST(TeamTrial, TheLeastDisturbedStretchOfATrialCounts) {
  TeamTrial trial;
  for (int i = 0; i < 5; ++i) trial.took(10);
  ASSERT_TRUE(trial.team());
  trial.took(50);
  trial.took(6);
  trial.took(50);
  EXPECT_GT(team_stretches(trial, 60, 10, 6), 55);
}

TEST(TeamTrial, LeavesOutTheStretchThatWakesThreads) {
  TeamTrial trial;
  for (int i = 0; i < 4; ++i) trial.took(10);
  ASSERT_TRUE(trial.team());
  trial.took(1000);
  EXPECT_GT(team_stretches(trial, 60, 10, 6), 55);
}

}  // namespace
}  // namespace treadle::run
