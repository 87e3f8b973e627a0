#include "base/memory_account.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace treadle {

namespace {

// Lies in front of the memory that is handed out.
struct alignas(kBufferAlignment) Header {
  std::shared_ptr<MemoryAccount> account;
  size_t bytes;
};

void release(void* context) {
  auto* header = static_cast<Header*>(context);
  header->account->subtract(header->bytes);
  header->~Header();
  std::free(context);
}

}  // namespace

BufferRef MemoryAccount::allocate(const std::shared_ptr<MemoryAccount>& account, size_t bytes) {
  const size_t rounded = (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment + sizeof(Header);
  if (rounded < bytes) return {};
  void* memory = std::aligned_alloc(kBufferAlignment, rounded);
  if (!memory) return {};
  new (memory) Header{account, bytes};
  account->add(bytes);
  return BufferRef::wrap(static_cast<std::byte*>(memory) + sizeof(Header), bytes, true, release, memory);
}

BufferRef MemoryAccount::adopt(const std::shared_ptr<MemoryAccount>& account, BufferRef memory, size_t added) {
  struct Adopted {
    std::shared_ptr<MemoryAccount> account;
    BufferRef memory;
    size_t added;
  };
  auto* adopted = new Adopted{account, std::move(memory), added};
  Buffer& buffer = *adopted->memory.get();
  const auto give_back = [](void* context) {
    std::unique_ptr<Adopted> last(static_cast<Adopted*>(context));
    last->account->subtract(last->added);
  };
  return BufferRef::wrap(buffer.data(), buffer.size(), buffer.writable(), give_back, adopted);
}

void MemoryAccount::add(size_t bytes) {
  const size_t now = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  // One thread adds; others only give back.
  if (now > peak_.load(std::memory_order_relaxed)) peak_.store(now, std::memory_order_relaxed);
}

namespace {

constexpr size_t kNeverRefused = 4096;

thread_local const MemoryScope* current_scope = nullptr;

}  // namespace

MemoryScope::MemoryScope(std::shared_ptr<MemoryAccount> account, size_t limit, size_t elsewhere)
    : account_(std::move(account)), limit_(limit), elsewhere_(elsewhere), outer_(current_scope) {
  current_scope = this;
}

MemoryScope::~MemoryScope() {
  current_scope = outer_;
}

const MemoryScope* MemoryScope::current() {
  return current_scope;
}

bool MemoryScope::fits(size_t bytes) const {
  const size_t live = account_->live() + elsewhere_;
  return bytes <= kNeverRefused || (live <= limit_ && bytes <= limit_ - live);
}

}  // namespace treadle
