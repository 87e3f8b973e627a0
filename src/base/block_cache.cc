#include "base/block_cache.h"

namespace treadle {

Block BlockCache::take(size_t bytes) {
  for (auto& place : places_) {
    uintptr_t word = place.load(std::memory_order_relaxed);
    const Block block = Block::of(word);
    if (block.size() < bytes || block.size() > bytes + bytes / 4 || !block) continue;
    if (!place.compare_exchange_strong(word, 0, std::memory_order_acquire)) continue;
    held_.fetch_sub(block.size(), std::memory_order_relaxed);
    return block;
  }
  return {};
}

bool BlockCache::give(Block block) {
  if (held_.fetch_add(block.size(), std::memory_order_relaxed) + block.size() <= limit_) {
    for (auto& place : places_) {
      uintptr_t empty = 0;
      if (place.load(std::memory_order_relaxed) == 0 &&
          place.compare_exchange_strong(empty, block.word(), std::memory_order_release)) {
        return true;
      }
    }
  }
  held_.fetch_sub(block.size(), std::memory_order_relaxed);
  return false;
}

}  // namespace treadle
