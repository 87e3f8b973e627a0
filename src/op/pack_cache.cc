#include "op/pack_cache.h"

#include <algorithm>
#include <new>
#include <string_view>

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
  std::vector<PackKey> shared_;  // what lies in it for other sessions
};

// What sessions have packed from shared memory.
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
  static auto* const made = new SharedPacks;  // there for sessions that go last of all
  return *made;
}

}  // namespace

PackBlock::~PackBlock() {
  if (!shared_.empty()) shared_packs().remove(*this);
}

size_t PackKey::Hash::operator()(const PackKey& key) const {
  uint64_t hash = key.range;
  for (const uint64_t part : {key.place, key.layout, static_cast<uint64_t>(key.bytes)}) {
    hash = (hash ^ part) * 0x9E37'79B9'7F4A'7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

PackCache::PackCache() = default;
PackCache::~PackCache() = default;

PackKey PackCache::shared_key(const PackKey& key) {
  const auto* const data = reinterpret_cast<const void*>(key.place);
  const size_t bytes = static_cast<size_t>(element_count_unchecked(key.dims)) * byte_width(key.type);
  const SharedPlace place = shared_place(data, bytes);
  PackKey shared = key;
  shared.range = place.range;
  shared.place = place.offset;
  return shared;
}

const void* PackCache::find_shared(const PackKey& key) {
  if (key.range == 0) return nullptr;
  const auto found = shared_packs().find(key);
  if (found.block) keep(found.block);
  return found.data;
}

const void* PackCache::offer(const PackKey& key, const void* made) {
  if (key.range == 0) return made;
  const auto used = shared_packs().find_or_add(key, filling_, made);
  keep(used.block);
  return used.data;
}

void PackCache::keep(const std::shared_ptr<PackBlock>& block) {
  if (std::find(kept_.begin(), kept_.end(), block) == kept_.end()) kept_.push_back(block);
}

void* PackCache::make(size_t bytes) {
  constexpr size_t kMinBlock = 16 << 10, kMaxBlock = 8 << 20;
  const size_t rounded =
      std::max((bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment, kBufferAlignment);
  if (rounded > left_) {
    const size_t size = std::max(rounded, std::clamp(total_, kMinBlock, kMaxBlock));
    const MemoryScope* const scope = MemoryScope::current();
    if (scope && !scope->fits(size)) throw MemoryRefused(scope->account(), size);
    BufferRef memory = scope ? MemoryAccount::allocate(scope->account(), size) : BufferRef::allocate(size);
    if (!memory) throw std::bad_alloc();
    auto block = std::make_shared<PackBlock>(std::move(memory));
    keep(block);
    filling_ = std::move(block);
    next_ = filling_->data();
    left_ = size;
    total_ += size;
  }
  void* made = next_;
  next_ += rounded;
  left_ -= rounded;
  return made;
}

}  // namespace treadle
