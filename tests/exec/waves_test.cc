#include "exec/waves.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace treadle::exec {
namespace {

// A stage for each list of needs; blocks of one trip.
plan::Wave wave_of(int64_t trips, std::vector<std::vector<plan::WaveStage::Need>> needs) {
  plan::Wave wave;
  wave.trips = trips;
  wave.block = 1;
  for (auto& list : needs) wave.stages.emplace_back().needs = std::move(list);
  return wave;
}

TEST(WavePosition, AStageIsOneBlockBehindWhatItNeeds) {
  const plan::Wave wave = wave_of(3, {{}, {{0, false}}});
  WavePosition at(wave);
  at.begin();
  EXPECT_EQ(at.take(1), 0u);  // the second stage has nothing to work on
  EXPECT_EQ(at.take(WavePosition::kNone), WavePosition::kNone);
  at.give_back(0);
  EXPECT_EQ(at.take(1), 1u);
  EXPECT_EQ(at.next_block(1), 0);
  EXPECT_EQ(at.take(1), 0u);
  EXPECT_EQ(at.next_block(0), 1);
  at.give_back(1);
  EXPECT_EQ(at.take(1), WavePosition::kNone);
  at.give_back(0);
  EXPECT_EQ(at.take(1), 1u);
}

TEST(WavePosition, AStageThatNeedsAllWaitsForTheLastBlock) {
  const plan::Wave wave = wave_of(2, {{}, {{0, true}}});
  WavePosition at(wave);
  at.begin();
  for (int block = 0; block < 2; ++block) {
    ASSERT_EQ(at.take(1), 0u);
    at.give_back(0);
  }
  EXPECT_EQ(at.take(0), 1u);
  at.give_back(1);
  EXPECT_FALSE(at.finished());
  EXPECT_EQ(at.take(0), 1u);
  at.give_back(1);
  EXPECT_TRUE(at.finished());
  at.begin();
  EXPECT_FALSE(at.finished());
}

TEST(WavePosition, KeepsTheOrderWhateverTheThreads) {
  constexpr int64_t kTrips = 200;
  const plan::Wave wave = wave_of(kTrips, {{}, {{0, false}}, {{1, false}}, {{0, true}}});
  WavePosition at(wave);
  for (int round = 0; round < 10; ++round) {
    at.begin();
    // What each stage has done; written by whoever holds it, read by those that need it.
    std::vector<int64_t> done(wave.stages.size(), 0);
    std::atomic<int> wrong{0};
    const auto work = [&] {
      size_t stage = WavePosition::kNone;
      while (!at.finished()) {
        const uint32_t seen = at.events();
        const size_t taken = at.take(stage);
        if (taken == WavePosition::kNone) {
          if (!at.finished()) at.wait(seen);
          continue;
        }
        stage = taken;
        const int64_t block = at.next_block(stage);
        wrong += done[stage] != block;
        done[stage] = block + 1;
        at.give_back(stage);
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    for (const int64_t blocks : done) EXPECT_EQ(blocks, kTrips);
  }
}

TEST(WavePosition, WakesWhoWaitsWhenItIsStopped) {
  const plan::Wave wave = wave_of(5, {{}});
  WavePosition at(wave);
  at.begin();
  ASSERT_EQ(at.take(0), 0u);
  const uint32_t seen = at.events();
  std::thread waits([&] { at.wait(seen); });
  at.stop();
  waits.join();
  EXPECT_TRUE(at.stopped());
}

}  // namespace
}  // namespace treadle::exec
