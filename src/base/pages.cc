#include "base/pages.h"

#include <cstdint>
#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "base/block_cache.h"

namespace treadle {

namespace {

uintptr_t round_up(uintptr_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

void ask_for_large_pages([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#if defined(__linux__)
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = round_up(begin, kLargePage), end = (begin + bytes) / kLargePage * kLargePage;
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

void* allocate_pages(size_t bytes) {
  if (bytes < kLargePage) return std::aligned_alloc(Block::kAlignment, round_up(bytes, Block::kAlignment));
  void* data = std::aligned_alloc(kLargePage, round_up(bytes, kLargePage));
  if (data) ask_for_large_pages(data, bytes);
  return data;
}

}  // namespace treadle
