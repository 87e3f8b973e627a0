#pragma once
// A cache of large blocks of memory that were freed lately. The system hands out zeroed pages, one fault each. For a
// buffer that lives for one step of folding or for one run, the faults cost more than the computation.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace treadle {

// A block's address and size in one word: the size is in the bits that the address's alignment leaves free.
class Block {
 public:
  static constexpr size_t kAlignment = 4096;
  static constexpr size_t kUnit = 64 << 10;  // sizes are multiples of this
  static constexpr size_t kMaxBytes = (kAlignment - 1) * kUnit;

  Block() = default;
  Block(void* data, size_t bytes) : word_(reinterpret_cast<uintptr_t>(data) | bytes / kUnit) {}
  static Block of(uintptr_t word) {
    Block block;
    block.word_ = word;
    return block;
  }

  explicit operator bool() const { return word_ != 0; }
  uintptr_t word() const { return word_; }
  void* data() const { return reinterpret_cast<void*>(word_ & ~(kAlignment - 1)); }
  size_t size() const { return (word_ & (kAlignment - 1)) * kUnit; }

 private:
  uintptr_t word_ = 0;
};

// Takes no lock. Holds at most `limit` bytes.
class BlockCache {
 public:
  explicit constexpr BlockCache(size_t limit) : limit_(limit) {}
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // A block of at least `bytes` and at most a quarter more; none if the cache has none.
  Block take(size_t bytes);
  // False if the cache is full.
  bool give(Block block);
  // Takes out all blocks, and calls `drop(block)` for each.
  template <class Drop>
  void clear(Drop&& drop) {
    for (auto& place : places_) {
      const Block block = Block::of(place.exchange(0, std::memory_order_acquire));
      if (!block) continue;
      held_.fetch_sub(block.size(), std::memory_order_relaxed);
      drop(block);
    }
  }
  size_t held() const { return held_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kPlaces = 32;

  const size_t limit_;
  std::atomic<size_t> held_{0};
  std::array<std::atomic<uintptr_t>, kPlaces> places_{};  // 0: empty
};

// Frees the blocks in the cache of buffers (base/buffer.h). Called at the end of work that takes more memory than any
// run will, such as folding the weights of a model.
void release_idle_blocks();

}  // namespace treadle
