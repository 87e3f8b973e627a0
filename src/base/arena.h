#pragma once
// Memory that is handed out piece by piece and freed as a whole. The arena runs no destructors; the caller runs them
// for objects that need them.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace treadle {

class MemoryAccount;

class Arena {
 public:
  Arena() = default;
  Arena(Arena&& other) noexcept { swap(other); }
  Arena& operator=(Arena&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Arena();

  // Never null. `alignment`: at most that of std::max_align_t.
  void* allocate(size_t bytes, size_t alignment) {
    const uintptr_t start = (next_ + alignment - 1) & ~(alignment - 1);
    if (start > end_ || bytes > end_ - start) return allocate_block(bytes);
    next_ = start + bytes;
    return reinterpret_cast<void*>(start);
  }
  // Uninitialised room for `count` objects.
  template <class T>
  T* room(size_t count) {
    return static_cast<T*>(allocate(count * sizeof(T), alignof(T)));
  }
  template <class T, class... Args>
  T* make(Args&&... args) {
    return new (room<T>(1)) T(std::forward<Args>(args)...);
  }
  std::string_view copy(std::string_view text) {
    if (text.empty()) return "";
    char* place = room<char>(text.size());
    std::memcpy(place, text.data(), text.size());
    return {place, text.size()};
  }
  // Takes over the memory of `other`, so that the pieces handed out by `other` stay valid.
  void adopt(Arena&& other);

 private:
  struct Head {  // at the beginning of a block
    Head* before;
    size_t bytes;            // size of the block with this head
    MemoryAccount* account;  // the account that counts the block, or null
  };
  static constexpr size_t kFirstBlock = size_t{4} << 10;
  static constexpr size_t kLargestBlock = size_t{1} << 20;

  void* allocate_block(size_t bytes);
  void swap(Arena& other) noexcept {
    std::swap(next_, other.next_);
    std::swap(end_, other.end_);
    std::swap(newest_, other.newest_);
    std::swap(block_bytes_, other.block_bytes_);
  }

  uintptr_t next_ = 0, end_ = 0;  // the rest of the newest block
  Head* newest_ = nullptr;
  size_t block_bytes_ = kFirstBlock;  // size of the next block; blocks grow up to the largest
};

}  // namespace treadle
