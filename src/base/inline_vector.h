#pragma once
// A vector whose first N elements need no allocation, for shapes, operand lists and the like.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace treadle {

// Whether an object can be moved by copying its bytes and forgetting the original. Specialise for types of which this
// is true although they are not trivially copyable.
template <class T>
inline constexpr bool kMovesByBytes = std::is_trivially_copyable_v<T>;

template <class T, size_t N>
class InlineVector {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  InlineVector() = default;
  explicit InlineVector(size_t count) { resize(count); }
  InlineVector(size_t count, const T& value) { resize(count, value); }
  InlineVector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  template <class It>
  InlineVector(It first, It last) {
    assign(first, last);
  }
  explicit InlineVector(std::span<const T> values) { assign(values.begin(), values.end()); }
  InlineVector(const InlineVector& other) {
    if (!copy_inline(other)) assign(other.begin(), other.end());
  }
  InlineVector(InlineVector&& other) noexcept { take(std::move(other)); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other && !copy_inline(other)) assign(other.begin(), other.end());
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) {
      destroy();
      take(std::move(other));
    }
    return *this;
  }
  ~InlineVector() { destroy(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  operator std::span<const T>() const { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }

  template <class It>
  void assign(It first, It last) {
    clear();
    if constexpr (std::forward_iterator<It>) {
      const size_t count = static_cast<size_t>(std::distance(first, last));
      reserve(count);
      copy_elements(first, count);
      size_ = count;
    } else {
      for (; first != last; ++first) push_back(*first);
    }
  }
  void clear() {
    std::destroy_n(data_, size_);
    size_ = 0;
  }
  void reserve(size_t capacity) {
    if (capacity > capacity_) grow(capacity);
  }
  void push_back(const T& value) { emplace_back(value); }
  void push_back(T&& value) { emplace_back(std::move(value)); }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) {
      T value(std::forward<Args>(args)...);  // made first, as `args` may refer to an element of this vector
      grow(capacity_ * 2);
      return *new (data_ + size_++) T(std::move(value));
    }
    return *new (data_ + size_++) T(std::forward<Args>(args)...);
  }
  void pop_back() { data_[--size_].~T(); }
  void resize(size_t count) {
    reserve(count);
    if (count < size_) {
      truncate(count);
    } else {
      std::uninitialized_value_construct(data_ + size_, data_ + count);
      size_ = count;
    }
  }
  void resize(size_t count, const T& value) {
    reserve(count);
    if (count < size_) {
      truncate(count);
    } else {
      std::uninitialized_fill(data_ + size_, data_ + count, value);
      size_ = count;
    }
  }
  void insert(size_t position, const T& value) {
    push_back(value);
    std::rotate(data_ + position, data_ + size_ - 1, data_ + size_);
  }
  void erase(size_t position) {
    std::move(data_ + position + 1, data_ + size_, data_ + position);
    pop_back();
  }

  friend bool operator==(const InlineVector& a, const InlineVector& b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i) {
      if (!(a.data_[i] == b.data_[i])) return false;
    }
    return true;
  }

 private:
  void truncate(size_t count) {
    std::destroy(data_ + count, data_ + size_);
    size_ = count;
  }
  T* inline_data() { return std::launder(reinterpret_cast<T*>(storage_)); }
  bool is_inline() const { return static_cast<const void*>(data_) == static_cast<const void*>(storage_); }
  void grow(size_t capacity) {
    T* bigger = static_cast<T*>(::operator new(capacity * sizeof(T), std::align_val_t(alignof(T))));
    std::uninitialized_move_n(data_, size_, bigger);
    std::destroy_n(data_, size_);
    release_storage();
    data_ = bigger;
    capacity_ = capacity;
  }
  void release_storage() {
    if (!is_inline()) ::operator delete(data_, std::align_val_t(alignof(T)));
  }
  void destroy() {
    clear();
    release_storage();
    data_ = inline_data();
    capacity_ = N;
  }
  static constexpr size_t kFewBytes = 128;
// Copies the whole inline storage: a fixed number of bytes takes a few instructions.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
  void copy_storage(const InlineVector& other) { std::memcpy(storage_, other.storage_, sizeof(storage_)); }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  // False, with nothing done, if elements have to be copied one by one.
  bool copy_inline(const InlineVector& other) {
    if constexpr (std::is_trivially_copyable_v<T> && sizeof(storage_) <= kFewBytes) {
      if (!is_inline() || !other.is_inline()) return false;
      copy_storage(other);
      size_ = other.size_;
      return true;
    } else {
      return false;
    }
  }
  // The memory at the end holds no objects yet. Most vectors hold a few numbers, for which a call to memcpy takes
  // longer than the copy.
  template <class It>
  void copy_elements(It first, size_t count) {
    if constexpr (std::is_trivially_copyable_v<T> && std::contiguous_iterator<It>) {
      const auto* from = std::to_address(first);
      switch (count) {
        case 3:
          data_[2] = from[2];
          [[fallthrough]];
        case 2:
          data_[1] = from[1];
          [[fallthrough]];
        case 1:
          data_[0] = from[0];
          [[fallthrough]];
        case 0:
          return;
        default:
          break;
      }
    }
    std::uninitialized_copy_n(first, count, data_);
  }
  void take(InlineVector&& other) {
    if (other.is_inline()) {
      if constexpr (kMovesByBytes<T> && sizeof(storage_) <= kFewBytes) {
        copy_storage(other);
        size_ = std::exchange(other.size_, 0);
      } else {
        std::uninitialized_move_n(other.data_, other.size_, data_);
        size_ = other.size_;
        other.clear();
      }
    } else {
      data_ = std::exchange(other.data_, other.inline_data());
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, N);
    }
  }

  alignas(T) std::byte storage_[N * sizeof(T)];
  T* data_ = inline_data();
  size_t size_ = 0;
  size_t capacity_ = N;
};

}  // namespace treadle
