#pragma once
// Weights packed for kernels. All plans of a session share them, also when kernels are prepared again for other input
// sizes. Weights packed from shared memory (base/shared_range.h) are shared by all sessions; each session keeps those
// that it uses alive.

#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/stoppable_lock.h"
#include "op/operand.h"

namespace treadle {

class PackBlock;

// Identifies packed weights: the contents, and the way they are packed.
struct PackKey {
  uint64_t range = 0;  // number of the shared memory; 0: none, and `offset` is an address, valid within one session
  uint64_t offset = 0;
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

  // The packed form of `constant`, an operand with contents, under `layout`. On first use, `pack(void* destination)`
  // makes it: plain data of `bytes` bytes without pointers into the session, 64-byte aligned. If `pack` is told to stop
  // (base/stop.h) or throws, its memory is freed, no caller gets the half-written data, and the next call packs again.
  // One thread at a time packs.
  template <class Fn>
  Result<const void*> get(const Operand& constant, uint64_t layout, size_t bytes, Fn&& pack) {
    const PackKey key{0, reinterpret_cast<uintptr_t>(constant.constant), constant.type, constant.dims, layout, bytes};
    if (const void* found = find(key)) return found;
    StoppableLock::Held turn(packing_);
    if (!packing_.is_mine() && !turn.take()) return stopped();
    if (const void* found = find_anywhere(key)) return found;
    Room room(*this, bytes);
    pack(room.data());
    if (was_stopped()) return stopped();
    return room.keep(key);
  }

  // Addresses of the constants that were packed.
  std::unordered_set<const void*> constants();

 private:
  // Weights lie close together in blocks of growing size, so that they take few large pages instead of many small ones.
  struct Filling {
    std::shared_ptr<PackBlock> block;
    std::byte* next = nullptr;
    size_t left = 0;
    size_t total = 0;  // bytes of all blocks
  };

  // Room in the current block, or in a new block. It is freed unless a caller keeps it.
  class Room {
   public:
    Room(PackCache& cache, size_t bytes);
    ~Room();
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;

    void* data() const { return data_; }
    // Makes the room the packed form of `key`, unless another session has packed the same meanwhile. Returns the form
    // that all sessions use.
    const void* keep(const PackKey& key);

   private:
    PackCache& cache_;
    Filling before_;
    std::shared_ptr<PackBlock> block_;
    std::byte* data_ = nullptr;
    size_t bytes_;
    bool is_kept_ = false;
  };

  static PackKey shared_key(const PackKey& key);
  const void* find(const PackKey& key);
  // Includes forms that other sessions have packed.
  const void* find_anywhere(const PackKey& key);
  void keep(const std::shared_ptr<PackBlock>& block);

  StoppableLock packing_;  // taken before mutex_
  std::mutex mutex_;       // held briefly, within a NoFork
  std::unordered_map<PackKey, const void*, PackKey::Hash> entries_;
  Filling filling_;
  std::vector<std::shared_ptr<PackBlock>> kept_;  // own blocks and those of other sessions
};

}  // namespace treadle
