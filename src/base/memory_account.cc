#include "base/memory_account.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/machine_memory.h"

namespace treadle {

namespace {

constexpr size_t kNeverRefused = 4096;
// The machine's free memory is read once for so many bytes, not for every tensor.
constexpr size_t kGrantBytes = size_t{64} << 20;
// Left free for other processes.
constexpr size_t kKeptFree = size_t{128} << 20;

// The sum over all accounts of the process, each rounded down to a megabyte. Granted memory that has not been written
// to still looks free to the system.
constexpr size_t kMegabyte = size_t{1} << 20;
std::atomic<size_t> held_megabytes{0};

size_t machine_grant() {
  const size_t left = machine_memory_left();
  if (left == SIZE_MAX) return left;
  const size_t promised = held_megabytes.load(std::memory_order_relaxed) * kMegabyte, resident = resident_memory();
  const size_t spoken_for = kKeptFree + (promised > resident ? promised - resident : 0);
  return left - std::min(left, spoken_for);
}

}  // namespace

std::shared_ptr<MemoryAccount> MemoryAccount::make(std::shared_ptr<MemoryAccount> whole) {
  return {new MemoryAccount(std::move(whole)), [](MemoryAccount* account) { account->let_go(kHeld); }};
}

BufferRef MemoryAccount::allocate(const std::shared_ptr<MemoryAccount>& account, size_t bytes) {
  BufferRef memory = BufferRef::allocate(bytes);
  if (!memory) return {};
  account->add(bytes);
  return adopt(account, std::move(memory), bytes);
}

BufferRef MemoryAccount::adopt(const std::shared_ptr<MemoryAccount>& account, BufferRef memory, size_t added) {
  memory->count_on(*account, added);
  return memory;
}

BufferRef MemoryAccount::allocate_growable(const std::shared_ptr<MemoryAccount>& account, size_t bytes) {
  BufferRef memory = BufferRef::allocate_growable(bytes);
  if (!memory) return {};
  account->add(bytes);
  return adopt(account, std::move(memory), bytes);
}

bool MemoryAccount::grow(MemoryAccount& account, Buffer& memory, size_t bytes) {
  const size_t before = memory.size();
  if (!memory.is_counted_on(account) || !memory.grow(bytes)) return false;
  account.add(bytes - before);
  memory.count_more(bytes - before);
  return true;
}

void MemoryAccount::begin(size_t limit, size_t elsewhere) {
  limit_ = limit;
  elsewhere_ = elsewhere;
  granted_.store(kGrantBytes, std::memory_order_relaxed);
}

bool MemoryAccount::fits(size_t bytes) {
  if (whole_ && !whole_->fits(bytes)) return false;
  const size_t held = live() + elsewhere_;
  if (limit_ > 0) return held <= limit_ && bytes <= limit_ - held;
  if (whole_) return true;
  const size_t granted = granted_.load(std::memory_order_relaxed);
  return (held <= granted && bytes <= granted - held) || machine_grants(bytes, held);
}

size_t MemoryAccount::room() const {
  const size_t above = whole_ ? whole_->room() : SIZE_MAX;
  if (limit_ == 0) return whole_ ? above : machine_grant();
  const size_t held = live() + elsewhere_;
  return std::min(above, limit_ - std::min(held, limit_));
}

bool MemoryAccount::machine_grants(size_t bytes, size_t held) {
  const size_t left = machine_grant();
  if (bytes > left) return false;
  granted_.store(held + bytes + std::min(left - bytes, kGrantBytes), std::memory_order_relaxed);
  return true;
}

Status MemoryAccount::refusal(size_t bytes, std::string_view what) const {
  if (limit_ > 0) return error(Code::kLimit, "the memory limit of {} bytes was reached by {}", limit_, what);
  return error(Code::kLimit, "the machine has {} bytes of memory left: too little for {} ({} bytes)", machine_grant(),
               what, bytes);
}

void MemoryAccount::add(size_t bytes) {
  const size_t now = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes - kHeld;
  size_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  if (whole_) return whole_->add(bytes);
  tell(now);
}

void MemoryAccount::subtract(size_t bytes) {
  if (bytes == 0) return;  // nothing was counted, so nothing kept the account alive
  if (whole_) {
    whole_->subtract(bytes);
  } else {
    tell((live_.load(std::memory_order_relaxed) - bytes) & (kHeld - 1));  // before the account may be destroyed
  }
  let_go(bytes);
}

MemoryAccount::~MemoryAccount() {
  tell(0);
}

// Each account adds the difference to what it reported last, so the sum stays right in whatever pieces memory comes and
// goes. Threads that report at once may leave an older number, until the next report or the end.
void MemoryAccount::tell(size_t held) {
  const size_t megabytes = held / kMegabyte;
  if (told_.load(std::memory_order_relaxed) == megabytes) return;
  const size_t before = told_.exchange(megabytes, std::memory_order_relaxed);
  held_megabytes.fetch_add(megabytes - before, std::memory_order_relaxed);
}

void MemoryAccount::let_go(size_t units) {
  if (live_.fetch_sub(units, std::memory_order_acq_rel) == units) delete this;
}

namespace {

thread_local const MemoryScope* current_scope = nullptr;

}  // namespace

MemoryScope::MemoryScope(const std::shared_ptr<MemoryAccount>& account, Refuses refuses)
    : account_(account), refuses_(refuses), outer_(current_scope) {
  current_scope = this;
}

MemoryScope::~MemoryScope() {
  current_scope = outer_;
}

const MemoryScope* MemoryScope::current() {
  return current_scope;
}

const MemoryScope* MemoryScope::exchange(const MemoryScope* scope) {
  return std::exchange(current_scope, scope);
}

bool MemoryScope::fits(size_t bytes) const {
  return !refuses() || bytes <= kNeverRefused || account_->fits(bytes);
}

namespace {

// In front of counted memory: the pointer to its account, or null.
constexpr size_t kCountedHeader = alignof(std::max_align_t);

}  // namespace

void* allocate_counted(size_t bytes) {
  const MemoryScope* const scope = current_scope;
  if (scope && scope->refuses() && !scope->account()->fits(bytes)) throw MemoryRefused(scope->account(), bytes);
  if (bytes > SIZE_MAX - kCountedHeader) throw std::bad_alloc();
  auto* memory = static_cast<std::byte*>(::operator new(bytes + kCountedHeader));
  MemoryAccount* const account = scope ? scope->account().get() : nullptr;
  std::memcpy(memory, &account, sizeof account);
  if (account) account->add(bytes);
  return memory + kCountedHeader;
}

void release_counted(void* memory, size_t bytes) noexcept {
  void* const header = static_cast<std::byte*>(memory) - kCountedHeader;
  MemoryAccount* account = nullptr;
  std::memcpy(&account, header, sizeof account);
  if (account) account->subtract(bytes);
  ::operator delete(header);
}

}  // namespace treadle
