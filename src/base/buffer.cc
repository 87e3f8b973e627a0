#include "base/buffer.h"

#include <cstdlib>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "base/block_cache.h"
#include "base/counted.h"
#include "base/memory_account.h"
#include "base/memory_fill.h"
#include "base/pages.h"

namespace treadle {

namespace {

constexpr size_t kCachedBytes = 256 << 10;  // smaller memory is not cached: its page faults are few
constexpr size_t kCacheLimit = 32 << 20;

#if defined(__SANITIZE_ADDRESS__)
#define TREADLE_KEEPS_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TREADLE_KEEPS_BLOCKS 0
#endif
#endif
#ifndef TREADLE_KEEPS_BLOCKS
#define TREADLE_KEEPS_BLOCKS 1
#endif

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Never destroyed: buffers may outlive everything else.
BlockCache& cache() {
  static auto* instance = new BlockCache(kCacheLimit);
  return *instance;
}

Block allocate_block(size_t bytes) {
  if (const Block kept = cache().take(bytes)) return kept;
  const size_t rounded = round_up(bytes, Block::kUnit);
  void* data = allocate_pages(rounded);
  return data ? Block(data, rounded) : Block();
}

void release_block(void* context) {
  const Block block = Block::of(reinterpret_cast<uintptr_t>(context));
  if (!cache().give(block)) std::free(block.data());
}

BufferRef filled(BufferRef buffer) {
  if (buffer) fill_fresh(buffer->data(), buffer->size());
  return buffer;
}

}  // namespace

void release_idle_blocks() {
  cache().clear([](Block block) { std::free(block.data()); });
}

void Buffer::uncount() {
  account_->subtract(counted_);
}

void Buffer::destroy() {
  if (!in_place_) return delete this;
  void* memory = context_;
  this->~Buffer();
  std::free(memory);
}

BufferRef BufferRef::allocate(size_t bytes) {
  const size_t rounded = round_up(bytes, kBufferAlignment);
  if (rounded < bytes || rounded > SIZE_MAX - kLargePage) return {};
  const auto own = [&](void* data, Buffer::Release release, void* context) -> BufferRef {
    if (!data) return {};
    auto* buffer = new (std::nothrow) Buffer(static_cast<std::byte*>(data), bytes, true, release, context);
    if (!buffer) release(context);
    return filled(BufferRef(buffer));
  };
  if (TREADLE_KEEPS_BLOCKS && rounded >= kCachedBytes && rounded <= kCacheLimit) {
    const Block block = allocate_block(rounded);
    return own(block.data(), release_block, reinterpret_cast<void*>(block.word()));
  }
  if (rounded >= kLargePage) {
    void* data = allocate_pages(rounded);
    return own(data, std::free, data);
  }
  static_assert(sizeof(Buffer) <= kBufferAlignment);
  // Small pieces are aligned here: an allocator keeps freed pieces of malloc at hand, but searches for an aligned piece
  // every time.
  constexpr size_t kSmall = 4 << 10;
  const size_t whole = kBufferAlignment + rounded;
  void* memory =
      whole <= kSmall ? std::malloc(whole + kBufferAlignment - 1) : std::aligned_alloc(kBufferAlignment, whole);
  if (!memory) return {};
  auto* aligned = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<size_t>(memory), kBufferAlignment));
  auto* buffer = new (aligned) Buffer(aligned + kBufferAlignment, bytes, true, nullptr, memory);
  buffer->in_place_ = true;
  return filled(BufferRef(buffer));
}

#if defined(__linux__)

namespace {

// Smaller memory is copied faster than remapped.
constexpr size_t kLeastMapped = size_t{256} << 10;
constexpr size_t kPage = 4096;

void release_mapping(void* context) {
  const auto& buffer = *static_cast<const Buffer*>(context);
  ::munmap(const_cast<std::byte*>(buffer.data()), round_up(buffer.size(), kPage));
}

}  // namespace

BufferRef BufferRef::allocate_growable(size_t bytes) {
  if (bytes < kLeastMapped) return allocate(bytes);
  if (bytes > SIZE_MAX - kPage) return {};
  void* data = ::mmap(nullptr, round_up(bytes, kPage), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return {};
  auto* buffer = new (std::nothrow) Buffer(static_cast<std::byte*>(data), bytes, true, release_mapping, nullptr);
  if (!buffer) {
    ::munmap(data, round_up(bytes, kPage));
    return {};
  }
  buffer->context_ = buffer;
  return filled(BufferRef(buffer));
}

bool Buffer::grow(size_t bytes) {
  if (release_ != release_mapping || !unique() || bytes < size_ || bytes > SIZE_MAX - kPage) return false;
  void* moved = ::mremap(data_, round_up(size_, kPage), round_up(bytes, kPage), MREMAP_MAYMOVE);
  if (moved == MAP_FAILED) return false;
  data_ = static_cast<std::byte*>(moved);
  fill_fresh(data_ + size_, bytes - size_);
  size_ = bytes;
  return true;
}

#else

BufferRef BufferRef::allocate_growable(size_t bytes) {
  return allocate(bytes);
}

bool Buffer::grow(size_t) {
  return false;
}

#endif

BufferRef BufferRef::allocate_strings(size_t count) {
  std::unique_ptr<String[]> strings(new (std::nothrow) String[count ? count : 1]);
  if (!strings) return {};
  const auto drop = [](void* context) { delete[] static_cast<String*>(context); };
  auto* buffer = new (std::nothrow)
      Buffer(reinterpret_cast<std::byte*>(strings.get()), count * sizeof(String), true, drop, strings.get());
  if (!buffer) return {};
  [[maybe_unused]] const String* const owned = strings.release();  // the buffer owns it
  return BufferRef(buffer);
}

BufferRef BufferRef::wrap(void* data, size_t bytes, bool writable, Buffer::Release release, void* context) {
  return BufferRef(new Buffer(static_cast<std::byte*>(data), bytes, writable, release, context));
}

BufferRef BufferRef::view(BufferRef owner, size_t offset, size_t bytes) {
  const auto drop = [](void* context) { BufferRef last(static_cast<Buffer*>(context)); };
  auto* view = new Buffer(owner->data() + offset, bytes, owner->writable(), drop, owner.buffer_);
  owner.buffer_ = nullptr;
  return BufferRef(view);
}

}  // namespace treadle
