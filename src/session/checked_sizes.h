#pragma once
// The sizes that a plan for any sizes may serve, because every node was found to take them (plan::check_sizes): numbers
// that stand for them, in a table that forgets. Threads ask it and add to it at once, without a lock.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace treadle::session {

class CheckedSizes {
 public:
  bool contains(uint64_t sizes) const { return place(sizes).load(std::memory_order_relaxed) == stored(sizes); }
  // What has the same place is forgotten.
  void add(uint64_t sizes) { place(sizes).store(stored(sizes), std::memory_order_relaxed); }

 private:
  static constexpr size_t kPlaces = 4096;  // 32 KB for a plan; a dialogue of a language model has as many lengths

  static uint64_t stored(uint64_t sizes) { return sizes | 1; }  // an empty place has 0
  const std::atomic<uint64_t>& place(uint64_t sizes) const { return places_[sizes / 2 % kPlaces]; }
  std::atomic<uint64_t>& place(uint64_t sizes) { return places_[sizes / 2 % kPlaces]; }

  std::array<std::atomic<uint64_t>, kPlaces> places_{};
};

}  // namespace treadle::session
