#include "threads.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <set>
#include <thread>

namespace treadle::provider {

namespace {

using Clock = std::chrono::steady_clock;

// Counts threads that have come to work.
class Arrivals {
 public:
  explicit Arrivals(size_t most) : most_(most) {}

  // Waits for the other threads, so that none does the work of two.
  void arrive() {
    std::unique_lock lock(mutex_);
    threads_.insert(std::this_thread::get_id());
    if (threads_.size() == most_) all_.notify_all();
    all_.wait_until(lock, end_, [&] { return threads_.size() == most_; });
  }
  size_t count() {
    const std::lock_guard lock(mutex_);
    return threads_.size();
  }

 private:
  const size_t most_;
  const Clock::time_point end_ = Clock::now() + std::chrono::milliseconds(20);
  std::mutex mutex_;
  std::condition_variable all_;
  std::set<std::thread::id> threads_;
};

// Nanoseconds to spread empty work over threads; the least of a few series, since other programs may interrupt one.
double spreading_ns(const OrtKernelContext* context, size_t pieces) {
  constexpr int kSeries = 3, kCalls = 32;
  auto least = Clock::duration::max();
  for (int i = 0; i < kSeries; ++i) {
    const Clock::time_point begin = Clock::now();
    for (int k = 0; k < kCalls; ++k) {
      check(ort().KernelContext_ParallelFor(context, [](void*, size_t) {}, pieces, pieces, nullptr));
    }
    least = std::min(least, Clock::now() - begin);
  }
  return std::chrono::duration<double, std::nano>(least).count() / kCalls;
}

}  // namespace

int Threads::of(const OrtKernelContext* context) {
  std::call_once(once_, [&] {
    const size_t most = std::max(std::thread::hardware_concurrency(), 1U);
    // A session with one thread calls the work directly, in some 12 ns; waking threads takes 300.
    constexpr double kCalledNs = 100;
    if (most == 1 || spreading_ns(context, most) < kCalledNs) return;
    Arrivals arrivals(most);
    const auto arrive = [](void* all, size_t) { static_cast<Arrivals*>(all)->arrive(); };
    check(ort().KernelContext_ParallelFor(context, arrive, most, most, &arrivals));
    count_ = static_cast<int>(arrivals.count());
  });
  return count_;
}

}  // namespace treadle::provider
