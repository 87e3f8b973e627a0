#include "base/buffer.h"

#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace treadle {

namespace {

constexpr size_t kLargePage = 2 << 20;
constexpr size_t kLargeBuffer = 2 * kLargePage;

// Memory in large pages, where the system gives them on request: they are filled with one fault instead of 512, and
// walks over many planes stay within what the processor remembers of the page table.
void* allocate_large(size_t bytes) {
  void* data = std::aligned_alloc(kLargePage, (bytes + kLargePage - 1) / kLargePage * kLargePage);
#if defined(__linux__)
  if (data) ::madvise(data, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
  return data;
}

}  // namespace

BufferRef BufferRef::allocate(size_t bytes) {
  const size_t rounded = (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  if (rounded < bytes || rounded > SIZE_MAX - kLargePage) return {};
  void* data = rounded >= kLargeBuffer ? allocate_large(rounded)
                                       : std::aligned_alloc(kBufferAlignment, rounded ? rounded : kBufferAlignment);
  if (!data) return {};
  return BufferRef(new Buffer(static_cast<std::byte*>(data), bytes, true, std::free, data));
}

BufferRef BufferRef::allocate_strings(size_t count) {
  auto* strings = new (std::nothrow) std::string[count ? count : 1];
  if (!strings) return {};
  return BufferRef(new Buffer(
      reinterpret_cast<std::byte*>(strings), count * sizeof(std::string), true,
      [](void* context) { delete[] static_cast<std::string*>(context); }, strings));
}

BufferRef BufferRef::wrap(void* data, size_t bytes, bool writable, Buffer::Release release, void* context) {
  return BufferRef(new Buffer(static_cast<std::byte*>(data), bytes, writable, release, context));
}

BufferRef BufferRef::view(BufferRef owner, size_t offset, size_t bytes) {
  std::byte* data = owner->data() + offset;
  const bool writable = owner->writable();
  auto* kept = new BufferRef(std::move(owner));
  return BufferRef(
      new Buffer(data, bytes, writable, [](void* context) { delete static_cast<BufferRef*>(context); }, kept));
}

}  // namespace treadle
