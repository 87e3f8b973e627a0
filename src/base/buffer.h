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
  // False for views of memory that must not change (mapped weights, a caller's read-only array).
  bool writable() const { return writable_; }
  // Of memory that grows at its end: the bytes in use. Whoever holds the value that ends there may append in place;
  // values that end earlier stay as they are.
  size_t used() const { return used_; }
  void set_used(size_t bytes) { used_ = bytes; }
  // Nobody appends any more: the buffer leaves the run that made it.
  void seal() { used_ = SIZE_MAX; }
  // Counts `bytes`, which were added to `account` before, until this buffer goes. Once.
  void count_on(MemoryAccount& account, size_t bytes) {
    account_ = &account;
    counted_ = bytes;
  }
  void count_more(size_t bytes) { counted_ += bytes; }
  bool is_counted_on(const MemoryAccount& account) const { return account_ == &account; }
  // Makes memory of BufferRef::allocate_growable `bytes` long, its contents kept, where nobody else refers to it; the
  // address may change. False where that cannot be.
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
  MemoryAccount* account_ = nullptr;  // which what is counted on it keeps alive
  size_t counted_ = 0;
  std::atomic<uint32_t> references_{1};
  bool writable_;
  bool in_place_ = false;  // the bytes lie in one piece of memory with this object, behind it
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
  ~BufferRef() { release(); }

  // 64-byte aligned, uninitialised. Null when the memory cannot be had.
  static BufferRef allocate(size_t bytes);
  // The same, made to grow.
  static BufferRef allocate_growable(size_t bytes);
  // `count` empty String objects (base/counted.h).
  static BufferRef allocate_strings(size_t count);
  // Memory of somebody else; `release(context)` runs when the last reference goes (may be null: it outlives us).
  static BufferRef wrap(void* data, size_t bytes, bool writable, Buffer::Release release, void* context);
  // A view of a part of `owner`, which it keeps alive.
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
