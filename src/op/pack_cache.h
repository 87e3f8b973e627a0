#pragma once
// Weights packed for kernels, shared by all plans of a session and kept across re-preparations for other input sizes.
// What is packed from shared memory (base/shared_range.h) is shared by all sessions, each of which keeps what it uses
// alive.

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "op/operand.h"

namespace treadle {

class PackBlock;

// Of which contents something was packed, and how.
struct PackKey {
  uint64_t range = 0;  // of shared memory; 0: `place` is an address, good for one session
  uint64_t place = 0;
  ElementType type = ElementType::kUndefined;
  Dims dims;
  uint64_t layout = 0;
  size_t bytes = 0;
  bool operator==(const PackKey&) const = default;

  struct Hash {
    size_t operator()(const PackKey& key) const;
  };
};

class PackCache {
 public:
  PackCache();
  ~PackCache();
  PackCache(const PackCache&) = delete;
  PackCache& operator=(const PackCache&) = delete;

  // The packed form of `constant`, an operand with contents, under `layout`, made by `pack(void* destination)` on first
  // use: plain data, which points to nothing that is the session's. 64-byte aligned.
  template <class Fn>
  const void* get(const Operand& constant, uint64_t layout, size_t bytes, Fn&& pack) {
    const std::lock_guard lock(mutex_);
    const PackKey key{0, reinterpret_cast<uintptr_t>(constant.constant), constant.type, constant.dims, layout, bytes};
    if (const auto it = entries_.find(key); it != entries_.end()) return it->second;
    const PackKey shared = shared_key(key);
    const void* found = find_shared(shared);
    if (!found) {
      void* const made = make(bytes);
      pack(made);
      found = offer(shared, made);
    }
    entries_.emplace(key, found);  // whole: `pack` may throw
    return found;
  }

 private:
  static PackKey shared_key(const PackKey& key);
  void* make(size_t bytes);
  const void* find_shared(const PackKey& key);
  // What everybody uses: `made`, unless another session has packed the same meanwhile.
  const void* offer(const PackKey& key, const void* made);
  void keep(const std::shared_ptr<PackBlock>& block);

  std::mutex mutex_;
  std::unordered_map<PackKey, const void*, PackKey::Hash> entries_;
  // Weights lie close together in blocks that grow, so that they take few large pages instead of many small ones.
  std::shared_ptr<PackBlock> filling_;
  std::vector<std::shared_ptr<PackBlock>> kept_;  // own ones and those of other sessions
  std::byte* next_ = nullptr;
  size_t left_ = 0;
  size_t total_ = 0;
};

}  // namespace treadle
