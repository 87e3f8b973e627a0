#pragma once
// Memory that is handed out piece by piece and given back as a whole. Whoever puts objects with destructors here runs
// these; the memory itself needs nothing.

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

  // Never null; `alignment` at most that of std::max_align_t.
  void* allocate(size_t bytes, size_t alignment) {
    const uintptr_t start = (next_ + alignment - 1) & ~(alignment - 1);
    if (start > end_ || bytes > end_ - start) return allocate_block(bytes);
    next_ = start + bytes;
    return reinterpret_cast<void*>(start);
  }
  // Room for `count` objects, which the caller makes.
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
  // Keeps alive what `other` has handed out.
  void adopt(Arena&& other);

 private:
  struct Head {  // of a block
    Head* before;
    size_t bytes;            // with this head
    MemoryAccount* account;  // that counts them, or null
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

  uintptr_t next_ = 0, end_ = 0;  // what is left of the newest block
  Head* newest_ = nullptr;
  size_t block_bytes_ = kFirstBlock;  // of the next block; they grow up to the largest
};

}  // namespace treadle
