#include "base/in_pieces.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "base/uninterrupted.h"
#include "gtest/gtest.h"

namespace treadle {
namespace {

using Pieces = std::vector<std::pair<int64_t, int64_t>>;

Pieces pieces_of(int64_t units, double ns_per_unit, bool& done) {
  Pieces pieces;
  done = in_pieces(units, ns_per_unit, [&](int64_t begin, int64_t end) { pieces.emplace_back(begin, end); });
  return pieces;
}

// Says stop when asked for the n-th time.
struct Patience {
  mutable int questions_left;
  StopCheck check() const {
    return {[](const void* self) { return --static_cast<const Patience*>(self)->questions_left < 0; }, this};
  }
};

TEST(InPieces, CoverAllUnitsInOrder) {
  bool done = false;
  EXPECT_EQ(pieces_of(0, 1, done), Pieces());
  EXPECT_TRUE(done);
  EXPECT_EQ(pieces_of(5, 1, done), (Pieces{{0, 5}}));
  EXPECT_EQ(pieces_of(100, kStopCheckNs / 32, done)[0].second, 2) << "a short one first";
  EXPECT_EQ(pieces_of(2, 10 * kStopCheckNs, done), (Pieces{{0, 1}, {1, 2}}));
  EXPECT_TRUE(done);
}

TEST(InPieces, AreShortWhereTheClockShowsThatTheyTakeLongerThanEstimated) {
  constexpr double kEstimatedNs = kStopCheckNs / 200;
  constexpr auto kReal = std::chrono::microseconds(200);  // twenty times as long
  int64_t longest = 0, units = 0, pieces = 0;
  const bool done = in_pieces(200, kEstimatedNs, [&](int64_t begin, int64_t end) {
    std::this_thread::sleep_for((end - begin) * kReal);
    if (++pieces > 2) longest = std::max(longest, end - begin);  // the first two tell the length of later ones
    units += end - begin;
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(units, 200);
  EXPECT_LE(longest, static_cast<int64_t>(kStopCheckNs / 200'000));
}

TEST(InPieces, EndWhenToldTo) {
  const Patience patience{2};
  const ThreadScope scope(1, patience.check());
  bool done = true;
  EXPECT_EQ(pieces_of(9, 2 * kStopCheckNs, done), (Pieces{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_FALSE(done);
  EXPECT_TRUE(scope.stopped());
}

TEST(InPieces, ShortLoopsCountTogether) {
  const Patience patience{0};
  const ThreadScope scope(1, patience.check());
  StopPoll stop;
  int loops = 0;
  while (in_pieces(10, kStopCheckNs / 1000, stop, [](int64_t, int64_t) {})) ++loops;
  EXPECT_EQ(loops, 6) << "a sixteenth of the time between two questions";
}

TEST(InPieces, LoopsAroundOneThatWasToldAreToldToo) {
  const Patience patience{1};
  const ThreadScope scope(1, patience.check());
  StopPoll stop;
  EXPECT_FALSE(in_pieces(9, kStopCheckNs, stop, [](int64_t, int64_t) {}));
  EXPECT_TRUE(stop.after(1));
  EXPECT_FALSE(in_pieces(1, 1, stop, [](int64_t, int64_t) {}));
}

TEST(InPieces, KeptResultsAreNotStopped) {
  const Patience patience{0};
  const ThreadScope scope(1, patience.check());
  bool done = false;
  {
    const Uninterrupted whole;
    EXPECT_EQ(pieces_of(3, 2 * kStopCheckNs, done).size(), 3u);
  }
  EXPECT_TRUE(done);
  EXPECT_EQ(pieces_of(3, 2 * kStopCheckNs, done).size(), 1u);
}

TEST(InPieces, StepsAreAskedForTogether) {
  const Patience patience{0};
  const ThreadScope scope(1, patience.check());
  StopPoll stop;
  StepPoll steps(stop, kStopCheckNs / 16 / 1024);
  int made = 0;
  while (!steps.after_step()) ++made;
  EXPECT_EQ(made, 2 * 1024 - 1) << "what is due is asked when it is past";
}

TEST(InPieces, AStoppedCallStaysStopped) {
  Patience patience{0};
  {
    const ThreadScope scope(1, patience.check());
    EXPECT_FALSE(was_stopped()) << "stop_requested() was not called yet";
    EXPECT_TRUE(stop_requested());
    EXPECT_TRUE(was_stopped());
    patience.questions_left = 9;
    EXPECT_TRUE(stop_requested()) << "some work has ended early";
  }
  EXPECT_FALSE(was_stopped());
}

TEST(InPieces, CopiesAndFills) {
  const size_t bytes = static_cast<size_t>(3.5 * kStopCheckNs / kByteNs);
  std::vector<char> from(bytes), to(bytes);
  for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<char>(i * 7919 >> 8);
  EXPECT_TRUE(copy_in_pieces(to.data(), from.data(), bytes));
  EXPECT_EQ(to, from);
  EXPECT_TRUE(fill_in_pieces(to.data(), 3, bytes));
  EXPECT_EQ(to, std::vector<char>(bytes, 3));
}

}  // namespace
}  // namespace treadle
