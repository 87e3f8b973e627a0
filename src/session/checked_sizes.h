#pragma once
// The sizes that every node accepts (plan::check_sizes), which a plan for any sizes may serve. A fixed table of hash
// numbers of sizes: new entries overwrite old ones. Threads read and write it without a lock.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace treadle::session {

class CheckedSizes {
 public:
  bool contains(uint64_t sizes) const { return place(sizes).load(std::memory_order_relaxed) == stored(sizes); }
  // Overwrites the entry at the same place.
  void add(uint64_t sizes) { place(sizes).store(stored(sizes), std::memory_order_relaxed); }

 private:
  static constexpr size_t kPlaces = 4096;  // 32 KB per plan; a dialogue with a language model has as many lengths

  static uint64_t stored(uint64_t sizes) { return sizes | 1; }  // 0 marks an empty place
  const std::atomic<uint64_t>& place(uint64_t sizes) const { return places_[sizes / 2 % kPlaces]; }
  std::atomic<uint64_t>& place(uint64_t sizes) { return places_[sizes / 2 % kPlaces]; }

  std::array<std::atomic<uint64_t>, kPlaces> places_{};
};

}  // namespace treadle::session
