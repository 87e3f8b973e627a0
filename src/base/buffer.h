#pragma once
// Reference-counted memory. A Buffer owns bytes, or keeps their owner (a mapped file, a caller's array) alive.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace treadle {

class MemoryAccount;

inline constexpr size_t kBufferAlignment = 64;

class Buffer {
 public:
  using Release = void (*)(void* context);

  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  // False for memory that must not change: mapped weights, a caller's read-only array.
  bool writable() const { return writable_; }
  // Memory that grows at its end: the number of bytes in use. A value that ends there may be appended to in place.
  // Values that end earlier stay as they are.
  size_t used() const { return used_; }
  void set_used(size_t bytes) { used_ = bytes; }
  // Forbids further appending: the buffer leaves the run that made it.
  void seal() { used_ = SIZE_MAX; }
  // The buffer subtracts `bytes` from `account` when it is freed. The caller has added them. May be called once.
  void count_on(MemoryAccount& account, size_t bytes) {
    account_ = &account;
    counted_ = bytes;
  }
  void count_more(size_t bytes) { counted_ += bytes; }
  bool is_counted_on(const MemoryAccount& account) const { return account_ == &account; }
  // Makes memory of BufferRef::allocate_growable `bytes` long, and keeps its contents; the address may change. False if
  // there is another reference, or no memory; then nothing has changed.
  bool grow(size_t bytes);
  bool unique() const { return references_.load(std::memory_order_acquire) == 1; }

 private:
  friend class BufferRef;
  Buffer(std::byte* data, size_t size, bool writable, Release release, void* context)
      : data_(data), size_(size), release_(release), context_(context), writable_(writable) {}
  ~Buffer() {
    if (release_) release_(context_);
    if (counted_ > 0) uncount();
  }
  void uncount();
  void destroy();

  std::byte* data_;
  size_t size_;
  size_t used_ = SIZE_MAX;
  Release release_;
  void* context_;
  MemoryAccount* account_ = nullptr;  // kept alive by the bytes that are counted on it
  size_t counted_ = 0;
  std::atomic<uint32_t> references_{1};
  bool writable_;
  bool in_place_ = false;  // the bytes lie directly behind this object, in the same allocation
};

class BufferRef {
 public:
  BufferRef() = default;
  BufferRef(const BufferRef& other) : buffer_(other.buffer_) { retain(); }
  BufferRef(BufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  friend void swap(BufferRef& a, BufferRef& b) noexcept { std::swap(a.buffer_, b.buffer_); }
  ~BufferRef() { release(); }

  // Uninitialised memory, aligned to 64 bytes. Null if there is none.
  static BufferRef allocate(size_t bytes);
  // As allocate(), for memory that Buffer::grow may extend.
  static BufferRef allocate_growable(size_t bytes);
  // `count` empty String objects (base/counted.h).
  static BufferRef allocate_strings(size_t count);
  // Memory of the caller. `release(context)` runs when the last reference goes; null if the memory is never freed.
  static BufferRef wrap(void* data, size_t bytes, bool writable, Buffer::Release release, void* context);
  // A view of a part of `owner`, which the view keeps alive.
  static BufferRef view(BufferRef owner, size_t offset, size_t bytes);

  explicit operator bool() const { return buffer_ != nullptr; }
  Buffer* operator->() const { return buffer_; }
  Buffer* get() const { return buffer_; }

 private:
  explicit BufferRef(Buffer* buffer) : buffer_(buffer) {}
  void retain() {
    if (buffer_) buffer_->references_.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    if (buffer_ && buffer_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) buffer_->destroy();
  }
  Buffer* buffer_ = nullptr;
};

}  // namespace treadle
