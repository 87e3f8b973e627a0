// Each helper thread has a mailbox, and a bit in a mask that is set while it is idle. A loop that wants help clears
// bits of as many helpers as it needs and can get, posts itself in their mailboxes, and starts on its own share at
// once. A share is handed out in ranges, and a thread that has finished its own share takes ranges of the other shares,
// so a late helper finds less to do. When all ranges are taken, the loop withdraws from mailboxes that were not opened
// yet, and waits only for helpers that opened theirs. Only starting a thread takes a lock.
#include "base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <chrono>
#include <csignal>
#include <exception>
#include <mutex>
#include <new>
#include <span>

#include "base/memory_account.h"
#include "base/pause.h"
#include "base/stack.h"

namespace treadle {

namespace {

// At most so many threads have a share of their own in a loop; further threads take ranges of other shares.
constexpr int kMostShares = 64;

struct Loop {
  void (*fn)(void*, int64_t, int64_t, int);
  void* context;
  int64_t units;
  int shares;
  int64_t share;           // units of each share but the last
  int64_t chunk;           // the most units of a range
  double units_per_check;  // estimated to take kStopCheckNs
  StopSource* stop;
  const MemoryScope* memory;
  std::fenv_t floating;                                   // the caller's rounding mode and treatment of denormals
  bool in_team;                                           // each share is one range
  std::array<std::atomic<int64_t>, kMostShares> taken{};  // units taken of each share
  std::atomic<bool> failed{false};                        // set when `failure` is
  std::exception_ptr failure;

  // A worker takes its own share, whose data may be in its cache since the last loop, then the rest of the others.
  void work(int worker) {
    try {
      Pace pace(units_per_check);
      for (int i = 0; i < shares; ++i) {
        if (!work_on((worker + i) % shares, worker, pace)) return leave_the_rest();
      }
    } catch (...) {
      leave_the_rest();
      if (!failed.exchange(true, std::memory_order_relaxed)) failure = std::current_exception();
    }
  }
  // On a thread of the pool. Sets the caller's floating-point mode.
  void help(int worker) {
    std::fesetenv(&floating);
    StopSource::exchange(stop);
    MemoryScope::exchange(memory);
    work(worker);
    MemoryScope::exchange(nullptr);
    StopSource::exchange(nullptr);
  }

 private:
  // False: the work was told to stop.
  bool work_on(int index, int worker, Pace& pace) {
    const int64_t first = index * share, last = std::min(first + share, units);
    std::atomic<int64_t>& done = taken[static_cast<size_t>(index)];
    while (done.load(std::memory_order_relaxed) < last - first) {
      const int64_t piece = next_piece(last - first - done.load(std::memory_order_relaxed), pace);
      const int64_t begin = first + done.fetch_add(piece, std::memory_order_relaxed);
      if (begin >= last) break;
      if (begin > 0 && stop && stop->requested()) return false;
      const int64_t end = std::min(begin + piece, last);
      fn(context, begin, end, worker);
      if (!in_team && end < last) pace.done(static_cast<double>(end - begin));
    }
    return true;
  }

  // How many of the `left` units of a share to take. Pieces get shorter, so that all threads end at about the same
  // time.
  int64_t next_piece(int64_t left, const Pace& pace) const {
    if (in_team) return share;
    const int64_t fair = shares == 1 ? chunk : std::clamp(left / 2, (chunk + 3) / 4, chunk);
    return std::max(std::min(fair, static_cast<int64_t>(std::min(pace.next(), 1e15))), int64_t{1});
  }

  void leave_the_rest() {
    for (std::atomic<int64_t>& all : taken) all.store(units, std::memory_order_relaxed);
  }
};

struct alignas(64) Helper {
  size_t index = 0;
  std::atomic<Loop*> mailbox{nullptr};
  int worker = 0;                     // number of the helper in the loop in its mailbox
  std::atomic<uint32_t> posted{0};    // counts posts; the helper sleeps on it
  std::atomic<uint32_t> finished{0};  // counts loops done; the thread that posted sleeps on it
};

// A helper that a loop has claimed, until the loop withdraws or the helper has finished.
struct Claim {
  Helper* helper;
  uint32_t finished_before;
};

constexpr size_t kHelpers = kMaxThreads - 1;
constexpr size_t kMaskWords = (kHelpers + 63) / 64;
// A helper looks into its mailbox for this long before it sleeps, while runs are in progress.
constexpr auto kHelperSpin = std::chrono::microseconds(200);
constexpr int kJoinSpins = 2000;
constexpr size_t kHelperStack = size_t{512} << 10;

class Pool {
 public:
  Pool() {
    for (size_t i = 0; i < kHelpers; ++i) helpers_[i].index = i;
  }

  // Claims up to `wanted` helpers. Starts threads if fewer than `wanted` were ever started.
  size_t claim(Loop& loop, size_t wanted, Claim* claims) {
    size_t count = 0;
    for (size_t word = 0; word < kMaskWords && count < wanted; ++word) {
      // All helpers of a word are claimed at once: a helper that finishes quickly must not be claimed a second time.
      for (uint64_t taken = take_idle(word, wanted - count); taken; taken &= taken - 1) {
        post(loop, helpers_[word * 64 + static_cast<size_t>(std::countr_zero(taken))], claims, count);
      }
    }
    if (count < wanted && started() < wanted) start(loop, wanted, claims, count);
    return count;
  }

  void join(Loop& loop, std::span<const Claim> claims);

  // runs in progress that may use threads
  std::atomic<int> scopes{0};
  std::atomic<int64_t> loops{0};
  // Generation of the process: 1 plus the number of forks since the first one.
  std::atomic<uint32_t> generation{1};
  size_t started() const { return started_.load(std::memory_order_relaxed); }

 private:
  // The caller has cleared the helper's bit, or is about to start its thread.
  static void post(Loop& loop, Helper& helper, Claim* claims, size_t& count) {
    claims[count] = {&helper, helper.finished.load(std::memory_order_relaxed)};
    helper.worker = static_cast<int>(++count);
    helper.mailbox.store(&loop, std::memory_order_release);
    helper.posted.fetch_add(1, std::memory_order_release);
    helper.posted.notify_one();
  }

  // Clears up to `most` bits of a word of the mask, and returns them.
  uint64_t take_idle(size_t word, size_t most) {
    uint64_t idle = idle_[word].load(std::memory_order_relaxed), rest = 0;
    do {
      rest = idle;
      for (size_t i = 0; i < most && rest; ++i) rest &= rest - 1;
    } while (idle && !idle_[word].compare_exchange_weak(idle, rest, std::memory_order_acquire));
    return idle & ~rest;
  }

  void set_idle(const Helper& helper) {
    idle_[helper.index / 64].fetch_or(uint64_t{1} << helper.index % 64, std::memory_order_release);
  }

  void start(Loop& loop, size_t wanted, Claim* claims, size_t& count);
  [[noreturn]] void serve(Helper& self);
  bool wait_awake(const Helper& helper) const;

  std::array<std::atomic<uint64_t>, kMaskWords> idle_{};
  std::atomic<size_t> started_{0};
  std::mutex starting_;
  std::array<Helper, kHelpers> helpers_;
};

// Never destroyed, since threads may be at work while the process ends. Built anew in this memory in the child of a
// fork, which has none of the threads.
alignas(Pool) std::byte pool_memory[sizeof(Pool)];

Pool& pool() {
  static Pool* const made = [] {
    auto* p = new (pool_memory) Pool;
    pthread_atfork(nullptr, nullptr, [] {
      auto* old = std::launder(reinterpret_cast<Pool*>(pool_memory));
      const uint32_t generation = old->generation.load(std::memory_order_relaxed);
      (new (pool_memory) Pool)->generation.store(generation + 1, std::memory_order_relaxed);
    });
    return p;
  }();
  return *made;
}

// The least work per thread that is worth sharing with helpers that have just worked for the same run.
constexpr double kMinAwakeNs = 8'000;

// The innermost scope of this thread.
thread_local ThreadScope* current_scope = nullptr;
// Until then, helpers of the innermost scope stay awake for the next loop.
thread_local std::chrono::steady_clock::time_point awake_until;

}  // namespace

void Pool::start(Loop& loop, size_t wanted, Claim* claims, size_t& count) {
  const std::lock_guard lock(starting_);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  want_stack(attributes, kHelperStack);
  // Signals go to the caller's own threads, as its handlers expect. Signals that a thread raises by its own fault stay
  // unblocked: if blocked, they would end the process in spite of a handler such as that of wire/watched_mapping.h.
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) sigdelset(&blocked, own);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  while (count < wanted && started() < std::min(wanted, kHelpers)) {
    Helper& helper = helpers_[started()];
    pthread_t thread;
    const auto run = [](void* self) -> void* { pool().serve(*static_cast<Helper*>(self)); };
    if (pthread_create(&thread, &attributes, run, &helper) != 0) break;  // the pool works with fewer threads
    started_.fetch_add(1, std::memory_order_relaxed);
    post(loop, helper, claims, count);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
}

// True if a loop was posted while the helper was still awake.
bool Pool::wait_awake(const Helper& helper) const {
  const auto begin = std::chrono::steady_clock::now();
  while (scopes.load(std::memory_order_relaxed) > 0) {
    for (int i = 0; i < 32; ++i) {
      if (helper.mailbox.load(std::memory_order_relaxed)) return true;
      pause_cpu();
    }
    if (std::chrono::steady_clock::now() - begin > kHelperSpin) return false;
  }
  return false;
}

void Pool::serve(Helper& self) {
#ifdef __linux__
  pthread_setname_np(pthread_self(), "treadle");
#endif
  for (;;) {
    const uint32_t seen = self.posted.load(std::memory_order_acquire);
    Loop* loop = self.mailbox.exchange(nullptr, std::memory_order_acq_rel);
    if (!loop) {
      if (!wait_awake(self)) self.posted.wait(seen, std::memory_order_acquire);
      continue;
    }
    loop->help(self.worker);
    self.finished.fetch_add(1, std::memory_order_release);
    self.finished.notify_one();
    set_idle(self);
  }
}

void Pool::join(Loop& loop, std::span<const Claim> claims) {
  for (const Claim& claim : claims) {
    Loop* posted = &loop;
    if (claim.helper->mailbox.compare_exchange_strong(posted, nullptr, std::memory_order_acq_rel)) {
      set_idle(*claim.helper);
      continue;
    }
    std::atomic<uint32_t>& finished = claim.helper->finished;
    for (int i = 0; i < kJoinSpins && finished.load(std::memory_order_acquire) == claim.finished_before; ++i) {
      pause_cpu();
    }
    finished.wait(claim.finished_before, std::memory_order_acquire);
  }
}

// ---------------------------------------------------------------------------------------------------------------------

ThreadScope::ThreadScope(int threads, StopCheck stop)
    : outer_(current_scope),
      outer_stop_(StopSource::current()),
      stop_(stop),
      threads_(std::clamp(threads, 1, kMaxThreads)) {
  current_scope = this;
  if (stop.should_stop) StopSource::exchange(&stop_);
}

ThreadScope::~ThreadScope() {
  current_scope = outer_;
  awake_until = {};
  StopSource::exchange(outer_stop_);
  if (generation_ != 0 && generation_ == pool().generation.load(std::memory_order_relaxed)) {
    pool().scopes.fetch_sub(1, std::memory_order_relaxed);
  }
}

int thread_limit() {
  return current_scope ? current_scope->threads() : 1;
}

void set_team(bool on) {
  if (current_scope) current_scope->team_ = on;
}

double least_thread_ns() {
  if (!current_scope) return kMinThreadNs;
  if (current_scope->team_) return kMinTeamNs;
  const bool awake = awake_until != decltype(awake_until)() && std::chrono::steady_clock::now() < awake_until;
  return awake ? kMinAwakeNs : kMinThreadNs;
}

Spread spread(double total_ns, int limit, double least_ns) {
  constexpr double kRangesPerThread = 4;
  const int threads = static_cast<int>(std::clamp(total_ns / least_ns, 1.0, static_cast<double>(limit)));
  // Ranges are short enough that a request to stop is noticed in time.
  const double checked = total_ns > kShortNs ? std::max(total_ns / kStopCheckNs, 2.0) : 1.0;
  if (threads == 1) return {1, total_ns, static_cast<int64_t>(std::min(checked, 1e9))};
  const double most = total_ns / (least_ns / 2);
  return {threads, total_ns, static_cast<int64_t>(std::max(std::min(threads * kRangesPerThread, most), checked))};
}

void run_ranges(int64_t units, Spread how, void (*fn)(void*, int64_t, int64_t, int), void* context) {
  ThreadScope* const scope = current_scope;
  const bool in_team = scope && scope->team_ && how.threads <= kMostShares && how.total_ns < kStopCheckNs;
  const int64_t ranges = in_team ? how.threads : how.ranges, chunk = (units + ranges - 1) / ranges;
  const auto threads = static_cast<int>(std::min<int64_t>(how.threads, (units + chunk - 1) / chunk));
  const int shares = std::min(threads, kMostShares);
  Loop loop{.fn = fn,
            .context = context,
            .units = units,
            .shares = shares,
            .share = (units + shares - 1) / shares,
            .chunk = chunk,
            .units_per_check = static_cast<double>(units) * kStopCheckNs / how.total_ns,
            .stop = StopSource::current(),
            .memory = MemoryScope::current(),
            .floating = {},
            .in_team = in_team,
            .failure = {}};
  if (threads <= 1) {
    loop.work(0);
  } else {
    std::fegetenv(&loop.floating);
    std::array<Claim, kHelpers> claims;
    Pool& helpers = pool();
    if (scope && scope->generation_ == 0) {
      scope->generation_ = helpers.generation.load(std::memory_order_relaxed);
      helpers.scopes.fetch_add(1, std::memory_order_relaxed);
    }
    const size_t count = helpers.claim(loop, static_cast<size_t>(threads - 1), claims.data());
    helpers.loops.fetch_add(1, std::memory_order_relaxed);
    current_scope = nullptr;  // nested loops run on the calling thread, here as on the helpers
    loop.work(0);
    current_scope = scope;
    helpers.join(loop, std::span(claims.data(), count));
    if (count > 0) awake_until = std::chrono::steady_clock::now() + kHelperSpin;
  }
  if (loop.failure) std::rethrow_exception(loop.failure);
}

ThreadPoolCounters thread_pool_counters() {
  return {static_cast<int>(pool().started()), pool().loops.load(std::memory_order_relaxed)};
}

}  // namespace treadle
