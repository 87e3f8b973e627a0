#include "op/pack_cache.h"

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

#include "base/buffer.h"
#include "base/memory_account.h"
#include "base/name_map.h"
#include "base/no_fork.h"
#include "base/shared_range.h"

namespace treadle {

class PackBlock {
 public:
  explicit PackBlock(BufferRef memory) : memory_(std::move(memory)) {}
  ~PackBlock();
  PackBlock(const PackBlock&) = delete;
  PackBlock& operator=(const PackBlock&) = delete;

  std::byte* data() const { return memory_->data(); }

 private:
  friend class SharedPacks;
  BufferRef memory_;
  std::vector<PackKey> shared_;  // keys of its weights that other sessions may use
};

// Packed forms of shared memory, made by any session.
class SharedPacks {
 public:
  struct Found {
    std::shared_ptr<PackBlock> block;
    const void* data = nullptr;
  };

  Found find(const PackKey& key) {
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    return find_locked(key);
  }
  Found find_or_add(const PackKey& key, const std::shared_ptr<PackBlock>& block, const void* data) {
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    if (Found other = find_locked(key); other.block) return other;
    block->shared_.push_back(key);
    entries_.insert_or_assign(key, Entry{block, data});
    return {block, data};
  }
  void remove(const PackBlock& block) {
    const NoFork whole;
    const std::lock_guard lock(mutex_);
    for (const PackKey& key : block.shared_) {
      const auto it = entries_.find(key);
      if (it != entries_.end() && it->second.block.expired()) entries_.erase(it);
    }
  }

 private:
  struct Entry {
    std::weak_ptr<PackBlock> block;
    const void* data;
  };

  Found find_locked(const PackKey& key) {
    const auto it = entries_.find(key);
    if (it == entries_.end()) return {};
    auto block = it->second.block.lock();
    return block ? Found{std::move(block), it->second.data} : Found();
  }

  std::mutex mutex_;
  std::unordered_map<PackKey, Entry, PackKey::Hash> entries_;
};

namespace {

SharedPacks& shared_packs() {
  static auto* const made = new SharedPacks;  // never destroyed: sessions may be freed after all static objects
  return *made;
}

}  // namespace

PackBlock::~PackBlock() {
  if (!shared_.empty()) shared_packs().remove(*this);
}

size_t PackKey::Hash::operator()(const PackKey& key) const {
  uint64_t hash = key.range;
  for (const uint64_t part : {key.offset, key.layout, static_cast<uint64_t>(key.bytes)}) {
    hash = (hash ^ part) * 0x9E37'79B9'7F4A'7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

PackCache::PackCache() = default;
PackCache::~PackCache() = default;

PackKey PackCache::shared_key(const PackKey& key) {
  const auto* const data = reinterpret_cast<const void*>(key.offset);
  const size_t bytes = static_cast<size_t>(element_count_unchecked(key.dims)) * byte_width(key.type);
  const RangeOffset found = range_offset(data, bytes);
  PackKey shared = key;
  shared.range = found.range;
  shared.offset = found.offset;
  return shared;
}

const void* PackCache::find(const PackKey& key) {
  const NoFork whole;
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : it->second;
}

const void* PackCache::find_anywhere(const PackKey& key) {
  const NoFork whole;
  const std::lock_guard lock(mutex_);
  if (const auto it = entries_.find(key); it != entries_.end()) return it->second;
  const PackKey shared = shared_key(key);
  if (shared.range == 0) return nullptr;
  const auto found = shared_packs().find(shared);
  if (!found.block) return nullptr;
  keep(found.block);
  return entries_.emplace(key, found.data).first->second;
}

void PackCache::keep(const std::shared_ptr<PackBlock>& block) {
  if (std::find(kept_.begin(), kept_.end(), block) == kept_.end()) kept_.push_back(block);
}

std::unordered_set<const void*> PackCache::constants() {
  const NoFork whole;
  const std::lock_guard lock(mutex_);
  std::unordered_set<const void*> all;
  for (const auto& [key, data] : entries_) all.insert(reinterpret_cast<const void*>(key.offset));
  return all;
}

namespace {

std::shared_ptr<PackBlock> make_block(size_t bytes) {
  const MemoryScope* const scope = MemoryScope::current();
  if (scope && !scope->fits(bytes)) throw MemoryRefused(scope->account(), bytes);
  BufferRef memory = scope ? MemoryAccount::allocate(scope->account(), bytes) : BufferRef::allocate(bytes);
  if (!memory) throw std::bad_alloc();
  return std::make_shared<PackBlock>(std::move(memory));
}

}  // namespace

PackCache::Room::Room(PackCache& cache, size_t bytes) : cache_(cache) {
  constexpr size_t kMinBlock = 16 << 10, kMaxBlock = 8 << 20;
  bytes_ = std::max((bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment, kBufferAlignment);
  const NoFork whole;
  const std::lock_guard lock(cache.mutex_);
  Filling& filling = cache.filling_;
  before_ = filling;
  if (bytes_ > filling.left) {
    const size_t size = std::max(bytes_, std::clamp(filling.total, kMinBlock, kMaxBlock));
    filling.block = make_block(size);
    filling.next = filling.block->data();
    filling.left = size;
    filling.total += size;
  }
  block_ = filling.block;
  data_ = filling.next;
  filling.next += bytes_;
  filling.left -= bytes_;
}

// If a signal handler has packed more behind this room in the meantime, the room stays allocated and unused.
PackCache::Room::~Room() {
  if (is_kept_) return;
  Filling given_back;  // destroyed after the lock is released, so that other threads need not wait for it
  const NoFork whole;
  const std::lock_guard lock(cache_.mutex_);
  if (cache_.filling_.next != data_ + bytes_) return;
  given_back = std::exchange(cache_.filling_, std::move(before_));
}

const void* PackCache::Room::keep(const PackKey& key) {
  const NoFork whole;
  const std::lock_guard lock(cache_.mutex_);
  SharedPacks::Found used{block_, data_};
  const PackKey shared = shared_key(key);
  if (shared.range != 0) used = shared_packs().find_or_add(shared, block_, data_);
  is_kept_ = used.data == data_;
  cache_.keep(used.block);
  return cache_.entries_.emplace(key, used.data).first->second;
}

}  // namespace treadle
