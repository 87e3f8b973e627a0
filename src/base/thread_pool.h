#pragma once
// The process's one pool of threads, and the loop that spreads work over it.
//
//   ThreadScope scope(4);                                    // around a run: this thread's work may take 4 threads
//   parallel_for(rows, ns_per_row, [&](int64_t begin, int64_t end, int worker) { ... });
//
// Without a scope, on a thread of the pool (nested use) and where the work is too small to be worth it, the loop runs
// on the calling thread. Threads are started when they are first needed, are shared by all sessions, never waited for
// while they are busy with another's work, sleep when there is nothing to do, and are made anew in the child of a fork.
// The pool is never destroyed; its threads end with the process.

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "base/stop.h"

namespace treadle {

inline constexpr int kMaxThreads = 256;

struct Spread;

// For its lifetime, work of the calling thread may use up to `threads` threads, itself among them.
class ThreadScope {
 public:
  explicit ThreadScope(int threads, StopCheck stop = {});
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

  int threads() const { return threads_; }
  // Whether some loop left work undone because it was told to stop.
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
  uint32_t generation_ = 0;  // of the pool that counts this scope; 0: none does
};

// Threads that a loop begun here may use.
int thread_limit();

// Work of less than this on each thread is not worth waking one.
inline constexpr double kMinThreadNs = 50'000;
// The same for threads that are awake: those of a team.
inline constexpr double kMinTeamNs = 3'000;

// For the steps of a recurrence: within the calling thread's scope, loops that follow one another within microseconds
// are shared among threads that stay awake in between, and so are worth it from kMinTeamNs on. Ends with the scope.
void set_team(bool on);
// What work on one thread of a loop begun here must take at least.
double least_thread_ns();

// How many threads work of `total_ns` nanoseconds is worth, of at most `limit`, and into how many ranges it is best cut
// for them: a few for each thread, so that one that comes late or is slowed down holds up nobody.
struct Spread {
  int threads;
  double total_ns;
  int64_t ranges;  // or more, where the clock shows that one takes longer than estimated
};
Spread spread(double total_ns, int limit, double least_ns);
// As fine as any loop will be cut, in a team or not; for what is laid out ahead.
inline Spread finest_spread(double total_ns, int limit) {
  return spread(total_ns, limit, kMinTeamNs);
}

// Calls fn(context, begin, end, worker) for ranges that cover [0, units), on up to `threads` threads. Each thread
// begins with a share of neighbouring units, the same ones in every loop of as many units, and takes its ranges in
// ascending order; in a team a share is one range. `worker` is below `threads` and below `units`, and no two calls have
// the same at a time. Returns when all have returned. Where calls throw, the first exception is thrown here, and ranges
// that nobody has begun are left.
void run_ranges(int64_t units, Spread how, void (*fn)(void* context, int64_t, int64_t, int), void* context);

// fn(begin, end, worker) over [0, units). What is computed must not depend on where ranges begin and end. `ns_per_unit`
// is a rough estimate, better too low than too high.
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

// What tests look at.
struct ThreadPoolCounters {
  int threads;    // started and alive
  int64_t loops;  // that were given to more than one thread
};
ThreadPoolCounters thread_pool_counters();

}  // namespace treadle
