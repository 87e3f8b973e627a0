#pragma once
// A repeated field: elements in a row in the arena of their message. Lists and their elements are plain data without
// destructors. Freeing a model of any size is thus freeing its arena.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "base/arena.h"
#include "base/status.h"

namespace treadle::wire {

template <class T>
class List {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  size_t size() const { return head_ ? head_->size : 0; }
  size_t capacity() const { return head_ ? head_->capacity : 0; }
  bool empty() const { return size() == 0; }
  T* data() { return head_ ? elements() : nullptr; }
  const T* data() const { return head_ ? elements() : nullptr; }
  T* begin() { return data(); }
  T* end() { return data() + size(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  T& operator[](size_t i) { return elements()[i]; }
  const T& operator[](size_t i) const { return elements()[i]; }
  T& front() { return elements()[0]; }
  const T& front() const { return elements()[0]; }
  T& back() { return elements()[size() - 1]; }
  const T& back() const { return elements()[size() - 1]; }
  operator std::span<const T>() const { return {data(), size()}; }  // NOLINT(google-explicit-constructor)

  // Elements may move. The old memory stays in the arena.
  void reserve(Arena& arena, size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    static_assert(alignof(T) <= alignof(Head));
    if (count <= capacity()) return;
    TREADLE_ASSERT(count <= std::numeric_limits<uint32_t>::max());
    Head* bigger = new (arena.allocate(sizeof(Head) + count * sizeof(T), alignof(Head))) Head;
    bigger->size = static_cast<uint32_t>(size());
    bigger->capacity = static_cast<uint32_t>(count);
    if (head_) std::memcpy(static_cast<void*>(bigger + 1), static_cast<const void*>(elements()), size() * sizeof(T));
    head_ = bigger;
  }
  T& add(Arena& arena, const T& element = {}) {
    if (size() == capacity()) {
      const T copy = element;  // `element` may be in this list
      reserve(arena, std::max<size_t>(2 * capacity(), 2));
      return *new (elements() + head_->size++) T(copy);
    }
    return *new (elements() + head_->size++) T(element);
  }
  // Adds a last element; there must be room for it.
  T& add_default() { return *new (elements() + head_->size++) T(); }
  // Keeps the first `count` elements only.
  void truncate(size_t count) {
    if (count < size()) head_->size = static_cast<uint32_t>(count);
  }
  void clear() { truncate(0); }
  template <class It>
  void append(Arena& arena, It first, It last) {
    reserve(arena, size() + static_cast<size_t>(std::distance(first, last)));
    for (; first != last; ++first) new (elements() + head_->size++) T(*first);
  }

  friend bool operator==(const List& a, const List& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  struct alignas(8) Head {
    uint32_t size, capacity;
  };
  T* elements() const { return reinterpret_cast<T*>(head_ + 1); }

  Head* head_ = nullptr;
};

}  // namespace treadle::wire
