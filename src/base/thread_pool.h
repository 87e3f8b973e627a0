#pragma once
// The process's pool of threads, and the loop that spreads work over it.
//
//   ThreadScope scope(4);                                    // around a run: this thread's work may take 4 threads
//   parallel_for(rows, ns_per_row, [&](int64_t begin, int64_t end, int worker) { ... });
//
// A loop runs on the calling thread alone if there is no scope, if it is nested in another loop, or if its work is too
// small to share. All sessions share the threads. Threads start when they are first needed and sleep when idle. A loop
// never waits for a thread that is busy with another loop. The child of a fork starts threads of its own. The pool is
// never destroyed; its threads end with the process.

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "base/stop.h"

namespace treadle {

inline constexpr int kMaxThreads = 256;

struct Spread;

// While it lives, work of the calling thread may use up to `threads` threads, including itself.
class ThreadScope {
 public:
  explicit ThreadScope(int threads, StopCheck stop = {});
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

  int threads() const { return threads_; }
  // Whether a loop left work undone because it was told to stop.
  bool stopped() const { return stop_.stopped(); }

 private:
  friend void run_ranges(int64_t, Spread, void (*)(void*, int64_t, int64_t, int), void*);
  friend void set_team(bool);
  friend double least_thread_ns();
  ThreadScope* outer_;
  StopSource* outer_stop_;
  StopSource stop_;
  int threads_;
  bool team_ = false;
  uint32_t generation_ = 0;  // generation of the pool that counts this scope; 0: none does
};

// How many threads a loop that begins here may use.
int thread_limit();

// Waking a thread pays from this much work per thread on.
inline constexpr double kMinThreadNs = 50'000;
// The same for threads that are awake in a team.
inline constexpr double kMinTeamNs = 3'000;

// For the steps of a recurrence. Within the calling thread's scope, threads stay awake between loops that follow each
// other within microseconds, so loops are shared from kMinTeamNs per thread on. Ends with the scope.
void set_team(bool on);
// The least work per thread for which a loop that begins here is shared.
double least_thread_ns();

// How many threads, of at most `limit`, to use for work of `total_ns` nanoseconds, and how many ranges to cut it into:
// a few per thread, so that a thread that comes late or is slow does not hold up the others.
struct Spread {
  int threads;
  double total_ns;
  int64_t ranges;  // more if the clock shows that a range takes longer than estimated
};
Spread spread(double total_ns, int limit, double least_ns);
// The finest that any loop will be cut, in a team or not, for memory that is laid out ahead.
inline Spread finest_spread(double total_ns, int limit) {
  return spread(total_ns, limit, kMinTeamNs);
}

// Calls fn(context, begin, end, worker) for ranges that cover [0, units), on up to `threads` threads. Each thread
// begins with a share of neighbouring units, which is the same in every loop of as many units, and takes its ranges in
// ascending order. In a team a share is one range. `worker` is below `threads` and below `units`, and is unique among
// concurrent calls. Returns when all calls have returned. If calls throw, the first exception is thrown here, and
// ranges that have not begun are dropped.
void run_ranges(int64_t units, Spread how, void (*fn)(void* context, int64_t, int64_t, int), void* context);

// Calls fn(begin, end, worker) over [0, units). Results must not depend on where ranges begin and end. `ns_per_unit`: a
// rough estimate, better too low than too high.
template <class Fn>
void parallel_for(int64_t units, double ns_per_unit, Fn&& fn) {
  static_assert(std::is_invocable_v<Fn&, int64_t, int64_t, int>);
  const double total_ns = static_cast<double>(units) * ns_per_unit;
  if (total_ns >= 2 * kMinTeamNs && units > 1) {
    const Spread how = spread(total_ns, thread_limit(), least_thread_ns());
    if (how.ranges > 1) {
      using Body = std::remove_reference_t<Fn>;
      return run_ranges(
          units, how,
          [](void* body, int64_t begin, int64_t end, int worker) { (*static_cast<Body*>(body))(begin, end, worker); },
          const_cast<std::remove_const_t<Body>*>(&fn));
    }
  }
  if (units > 0) fn(int64_t{0}, units, 0);
}

// For tests.
struct ThreadPoolCounters {
  int threads;    // started and alive
  int64_t loops;  // loops that more than one thread worked on
};
ThreadPoolCounters thread_pool_counters();

}  // namespace treadle
