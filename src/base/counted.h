#pragma once
// Containers whose memory is counted on an account, as tensors are (base/memory_account.h): texts, and working memory
// of kernels whose size depends on data.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace treadle {

// Counts on the MemoryScope of this thread, if there is one. Throws MemoryRefused and std::bad_alloc.
void* allocate_counted(size_t bytes);
void release_counted(void* memory, size_t bytes) noexcept;

// Allocator of counted containers.
template <class T>
class CountedAllocator {
 public:
  using value_type = T;
  CountedAllocator() = default;
  template <class U>
  CountedAllocator(const CountedAllocator<U>&) {}

  T* allocate(size_t count) {
    static_assert(alignof(T) <= alignof(std::max_align_t));
    if (count > PTRDIFF_MAX / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(allocate_counted(count * sizeof(T)));
  }
  void deallocate(T* memory, size_t count) noexcept { release_counted(memory, count * sizeof(T)); }
  bool operator==(const CountedAllocator&) const { return true; }
};

template <class T>
using CountedVector = std::vector<T, CountedAllocator<T>>;

// A text in a tensor.
using String = std::basic_string<char, std::char_traits<char>, CountedAllocator<char>>;

}  // namespace treadle

template <>
struct std::hash<treadle::String> {
  size_t operator()(const treadle::String& text) const { return std::hash<std::string_view>()(text); }
};
