#pragma once
// What a run's tensors take, counted until the last reference to them goes, wherever that is.

#include <atomic>
#include <cstddef>
#include <memory>

#include "base/buffer.h"

namespace treadle {

class MemoryAccount {
 public:
  // Memory that is counted while it lives, on `account`, which lives as long. Null when it cannot be had.
  static BufferRef allocate(const std::shared_ptr<MemoryAccount>& account, size_t bytes);

  // `memory`, whose bytes have been added before, counted while it lives.
  static BufferRef adopt(const std::shared_ptr<MemoryAccount>& account, BufferRef memory, size_t added);

  // For memory that is allocated elsewhere.
  void add(size_t bytes);
  void subtract(size_t bytes) { live_.fetch_sub(bytes, std::memory_order_relaxed); }

  size_t live() const { return live_.load(std::memory_order_relaxed); }
  size_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_.store(live(), std::memory_order_relaxed); }

 private:
  std::atomic<size_t> live_{0}, peak_{0};
};

// While it lives, `Tensor::allocate` on its thread counts on an account, and fails where that and what is held
// `elsewhere` would be more than `limit` bytes. Small tensors are counted but never refused, for code that makes a
// scalar has no way to fail: who opens a scope looks at the account from time to time.
class MemoryScope {
 public:
  MemoryScope(std::shared_ptr<MemoryAccount> account, size_t limit, size_t elsewhere = 0);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  // The innermost one of this thread; null outside of all.
  static const MemoryScope* current();

  bool fits(size_t bytes) const;
  size_t limit() const { return limit_; }
  const std::shared_ptr<MemoryAccount>& account() const { return account_; }

 private:
  const std::shared_ptr<MemoryAccount> account_;
  const size_t limit_, elsewhere_;
  const MemoryScope* const outer_;
};

}  // namespace treadle
