#include "base/arena.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/block_cache.h"
#include "base/memory_account.h"
#include "base/pages.h"

namespace treadle {

namespace {

// Blocks that are not small wait for the next arena. If they went back to the system, their pages would come back one
// fault at a time, which costs more than reading a model into them.
BlockCache& spare_blocks() {
  constexpr size_t kMost = size_t{16} << 20;
  static BlockCache* const blocks = new BlockCache(kMost);  // never destroyed: arenas may outlive static destructors
  return *blocks;
}

bool may_wait(size_t bytes) {
  return bytes >= Block::kUnit && bytes <= Block::kMaxBytes;
}

// An arena that holds much gets blocks of large pages. Half of such a block may stay unused.
constexpr size_t kMuch = size_t{8} << 20;
constexpr size_t kPagedBlock = size_t{4} << 20;

// A new block of at least `bytes`, which is set to the block's size.
void* new_block(size_t& bytes) {
  if (!may_wait(bytes)) return ::operator new(bytes);
  bytes = (bytes + Block::kUnit - 1) / Block::kUnit * Block::kUnit;
  if (const Block block = spare_blocks().take(bytes)) {
    bytes = block.size();
    return block.data();
  }
  if (void* block = allocate_pages(bytes)) return block;
  throw std::bad_alloc();
}

void delete_block(void* data, size_t bytes) {
  if (!may_wait(bytes)) return ::operator delete(data);
  if (!spare_blocks().give(Block(data, bytes))) std::free(data);
}

}  // namespace

Arena::~Arena() {
  while (newest_) {
    Head* head = std::exchange(newest_, newest_->before);
    if (head->account) head->account->subtract(head->bytes);
    delete_block(head, head->bytes);
  }
}

void* Arena::allocate_block(size_t bytes) {
  constexpr size_t kHead = (sizeof(Head) + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);
  // A large piece gets a block of its own, and the rest of the newest block stays in use.
  const bool large = bytes > block_bytes_ / 4;
  size_t size = large ? kHead + bytes : block_bytes_;
  if (size == kLargestBlock) {
    size_t held = 0;
    for (const Head* head = newest_; head && held < kMuch; head = head->before) held += head->bytes;
    if (held >= kMuch) size = kPagedBlock;
  }
  const MemoryScope* const scope = MemoryScope::current();
  if (scope && !scope->fits(size)) throw MemoryRefused(scope->account(), size);
  void* block = new_block(size);
  Head* head = new (block) Head{nullptr, size, scope ? scope->account().get() : nullptr};
  if (scope) scope->account()->add(size);
  const uintptr_t start = reinterpret_cast<uintptr_t>(head) + kHead;  // aligned for anything
  if (large && newest_) {
    head->before = std::exchange(newest_->before, head);
    return reinterpret_cast<void*>(start);
  }
  head->before = std::exchange(newest_, head);
  next_ = start + bytes;
  end_ = start + size - kHead;
  if (!large) block_bytes_ = std::min(block_bytes_ * 4, kLargestBlock);
  return reinterpret_cast<void*>(start);
}

void Arena::adopt(Arena&& other) {
  if (!other.newest_) return;
  if (!newest_) return swap(other);
  Head* oldest = other.newest_;
  while (oldest->before) oldest = oldest->before;
  oldest->before = std::exchange(newest_->before, std::exchange(other.newest_, nullptr));
  other.next_ = other.end_ = 0;
}

}  // namespace treadle
