#pragma once
// What a run's tensors take, counted until the last reference to them goes, wherever that is.

#include <atomic>
#include <cstddef>
#include <memory>

#include "base/buffer.h"

namespace treadle::exec {

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

}  // namespace treadle::exec
