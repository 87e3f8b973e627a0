#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <chrono>
#include <new>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#if defined(__has_feature)
#define TREADLE_HAS_FEATURE(x) __has_feature(x)
#else
#define TREADLE_HAS_FEATURE(x) 0
#endif

namespace treadle {
namespace {

constexpr double kMuch = 1e6;  // ns per unit

void spin_for(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// How often each unit was processed.
std::vector<int> visits(int64_t units, double ns) {
  std::vector<int> count(static_cast<size_t>(units));
  parallel_for(units, ns, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) ++count[static_cast<size_t>(i)];
  });
  return count;
}

bool all_once(const std::vector<int>& count) {
  return std::all_of(count.begin(), count.end(), [](int n) { return n == 1; });
}

TEST(ThreadPool, VisitsEveryUnitOnce) {
  const ThreadScope scope(4);
  for (const int64_t units : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{64}, int64_t{1001}}) {
    for (const double ns : {0.0, 10.0, 1e4, kMuch}) EXPECT_TRUE(all_once(visits(units, ns))) << units << " " << ns;
  }
  EXPECT_TRUE(visits(0, kMuch).empty());
}

TEST(ThreadPool, RunsOnTheCallerWithoutAScope) {
  const auto self = std::this_thread::get_id();
  const int64_t loops = thread_pool_counters().loops;
  EXPECT_EQ(thread_limit(), 1);
  parallel_for(8, kMuch, [&](int64_t, int64_t, int worker) {
    EXPECT_EQ(std::this_thread::get_id(), self);
    EXPECT_EQ(worker, 0);
  });
  EXPECT_EQ(thread_pool_counters().loops, loops);
}

TEST(ThreadPool, SmallWorkStaysOnTheCaller) {
  const ThreadScope scope(4);
  const int64_t loops = thread_pool_counters().loops;
  visits(1000, 1);
  visits(1, 1e9);
  EXPECT_EQ(thread_pool_counters().loops, loops);
  visits(1000, 2000);
  EXPECT_EQ(thread_pool_counters().loops, loops + 1);
}

TEST(ThreadPool, WorkersAreDistinctAndBelowTheLimit) {
  const ThreadScope scope(3);
  std::array<std::atomic<bool>, 3> busy{};
  std::atomic<bool> clash{false};
  parallel_for(60, kMuch, [&](int64_t begin, int64_t end, int worker) {
    if (worker < 0 || worker >= 3 || busy[static_cast<size_t>(worker)].exchange(true)) return clash.store(true);
    spin_for(std::chrono::microseconds(20 * (end - begin)));
    busy[static_cast<size_t>(worker)] = false;
  });
  EXPECT_FALSE(clash);
}

TEST(ThreadPool, HelpersDoTakePart) {
  const ThreadScope scope(2);
  std::set<int> workers;
  // On a busy machine the helper may be late, but not a hundred times in a row.
  for (int attempt = 0; attempt < 100 && workers.size() < 2; ++attempt) {
    std::atomic<int> seen{0};
    parallel_for(20, kMuch, [&](int64_t, int64_t, int worker) {
      seen |= 1 << worker;
      spin_for(std::chrono::microseconds(500));
    });
    for (int w = 0; w < 2; ++w) {
      if (seen >> w & 1) workers.insert(w);
    }
  }
  EXPECT_EQ(workers.size(), 2u);
}

TEST(ThreadPool, WorkersTakeTheirOwnShareFirst) {
  const ThreadScope scope(2);
  std::array<std::atomic<int64_t>, 2> first{-1, -1};
  parallel_for(80, kMuch, [&](int64_t begin, int64_t, int worker) {
    int64_t none = -1;
    first[static_cast<size_t>(worker)].compare_exchange_strong(none, begin);
    spin_for(std::chrono::microseconds(100));
  });
  EXPECT_EQ(first[0], 0);
  if (first[1] >= 0) EXPECT_GE(first[1], 40);  // the helper may be late on a busy machine
}

TEST(ThreadPool, NestedLoopsRunInline) {
  const ThreadScope scope(4);
  std::vector<int> count(64);
  parallel_for(8, kMuch, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const auto self = std::this_thread::get_id();
      EXPECT_EQ(thread_limit(), 1);
      parallel_for(8, kMuch, [&](int64_t b, int64_t e, int worker) {
        EXPECT_EQ(worker, 0);
        EXPECT_EQ(std::this_thread::get_id(), self);
        for (int64_t k = b; k < e; ++k) ++count[static_cast<size_t>(8 * i + k)];
      });
    }
  });
  EXPECT_TRUE(all_once(count));
  EXPECT_EQ(thread_limit(), 4);
}

TEST(ThreadPool, ManyCallersShareIt) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&wrong, c] {
      const ThreadScope scope(1 + c % 4);
      for (int i = 0; i < 300; ++i) wrong += all_once(visits(17 + c, 1e5)) ? 0 : 1;
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, StartsNoMoreThreadsThanAskedFor) {
  const ThreadScope scope(5);
  visits(100, kMuch);
  const int started = thread_pool_counters().threads;
  EXPECT_GE(started, 4);
  for (int i = 0; i < 50; ++i) visits(100, kMuch);
  EXPECT_EQ(thread_pool_counters().threads, started);
}

TEST(ThreadPool, StopsBetweenRanges) {
  std::atomic<bool> stop{false};
  const StopCheck check{[](const void* flag) { return static_cast<const std::atomic<bool>*>(flag)->load(); }, &stop};
  for (const int threads : {1, 3}) {
    stop = false;
    const ThreadScope scope(threads, check);
    std::atomic<int64_t> done{0};
    parallel_for(1000, 10 * kStopCheckNs, [&](int64_t begin, int64_t end, int) {
      done += end - begin;
      stop = true;
    });
    EXPECT_TRUE(scope.stopped());
    EXPECT_LT(done, 1000);
  }
  stop = false;
  const ThreadScope scope(3, check);
  EXPECT_TRUE(all_once(visits(1000, kMuch)));
  EXPECT_FALSE(scope.stopped());
}

TEST(ThreadPool, AnExceptionOfARangeReachesTheCaller) {
  for (const int threads : {1, 4}) {
    const ThreadScope scope(threads);
    for (const int64_t bad : {int64_t{0}, int64_t{17}, int64_t{999}}) {
      const auto run = [&] {
        parallel_for(1000, kMuch, [&](int64_t begin, int64_t end, int) {
          if (begin <= bad && bad < end) throw std::bad_alloc();
        });
      };
      EXPECT_THROW(run(), std::bad_alloc);
    }
    EXPECT_TRUE(all_once(visits(1000, kMuch)));
  }
}

TEST(ThreadPool, HelpersRoundAsTheCallerDoes) {
  std::fesetround(FE_UPWARD);
  const ThreadScope scope(4);
  std::atomic<int> other{0};
  parallel_for(64, kMuch, [&](int64_t, int64_t, int) {
    if (std::fegetround() != FE_UPWARD) ++other;
    spin_for(std::chrono::microseconds(50));
  });
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(other, 0);
}

TEST(ThreadPool, IsMadeAnewAfterFork) {
#if defined(__SANITIZE_THREAD__) || TREADLE_HAS_FEATURE(thread_sanitizer)
  GTEST_SKIP() << "the thread sanitizer lets no forked process start threads";
#endif
  const ThreadScope scope(3);
  visits(100, kMuch);
  ASSERT_GE(thread_pool_counters().threads, 2);
  const pid_t child = fork();
  if (child == 0) {
    const bool fresh = thread_pool_counters().threads == 0;
    const bool works = all_once(visits(100, kMuch));
    const bool restarted = thread_pool_counters().threads == 2;
    _exit(fresh && works && restarted ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(all_once(visits(100, kMuch)));
}

TEST(ParallelFor, SharesShortWorkInATeam) {
  const ThreadScope scope(2);
  const auto shared_loops = [] {
    const int64_t before = thread_pool_counters().loops;
    EXPECT_TRUE(all_once(visits(100, kMinTeamNs * 4 / 100)));
    return thread_pool_counters().loops - before;
  };
  EXPECT_EQ(shared_loops(), 0);
  set_team(true);
  EXPECT_EQ(shared_loops(), 1);
  set_team(false);
  EXPECT_EQ(shared_loops(), 0);
}

TEST(ParallelFor, GivesEachThreadOfATeamARangeOfItsOwn) {
  const ThreadScope scope(2);
  set_team(true);
  std::array<std::atomic<int>, 2> starts{-1, -1};
  std::atomic<int> begun{0};
  parallel_for(8, kMuch / 8, [&](int64_t begin, int64_t end, int worker) {
    EXPECT_EQ(end - begin, 4);
    EXPECT_EQ(starts[static_cast<size_t>(worker)].exchange(static_cast<int>(begin)), -1);
    // If the helper is late on a busy machine, the caller takes its range as well.
    ++begun;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (begun < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  EXPECT_EQ(starts[0], 0);
  EXPECT_EQ(starts[1], 4);
}

TEST(ParallelFor, ATeamStopsBetweenRanges) {
  const std::atomic<bool> stop{true};
  const StopCheck check{[](const void* flag) { return static_cast<const std::atomic<bool>*>(flag)->load(); }, &stop};
  const ThreadScope scope(3, check);
  set_team(true);
  std::atomic<int64_t> done{0};
  parallel_for(9, kMuch / 9, [&](int64_t begin, int64_t end, int) { done += end - begin; });
  EXPECT_TRUE(scope.stopped());
  EXPECT_LE(done, 3);
}

TEST(Spread, GrowsWithTheWork) {
  const auto cold = [](double ns, int limit) { return spread(ns, limit, kMinThreadNs); };
  EXPECT_EQ(cold(10'000, 8).threads, 1);
  EXPECT_EQ(cold(10'000, 8).ranges, 1);
  EXPECT_EQ(finest_spread(10'000, 8).threads, 3);
  EXPECT_EQ(finest_spread(10'000, 8).ranges, 6);
  EXPECT_EQ(cold(110'000, 8).threads, 2);
  EXPECT_EQ(cold(110'000, 8).ranges, 4);
  EXPECT_EQ(cold(1e7, 8).threads, 8);
  EXPECT_EQ(cold(1e7, 8).ranges, 32);
  EXPECT_EQ(cold(1e9, 8).threads, 8);
  EXPECT_EQ(cold(1e9, 8).ranges, 500);  // by the time between two stop checks
  EXPECT_EQ(cold(1e9, 1).threads, 1);
  EXPECT_EQ(cold(1e9, 1).ranges, 500);
}

}  // namespace
}  // namespace treadle
