#include "wire/watched_mapping.h"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): <csignal> has no sigaction
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

#include "base/knobs.h"
#include "base/no_fork.h"

namespace treadle::wire {

// Read by the signal handler, so it is never freed. `end` 0: not in use.
struct Range {
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> has_holes{false};
};

namespace {

static_assert(std::atomic<uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

struct Block {
  std::array<Range, 64> ranges;
  std::atomic<Block*> next{nullptr};
};

constinit Block first_block;
constinit std::mutex changing;  // guards ranges; taken inside a NoFork
struct sigaction before{};      // the previous handler; written before ours is installed
constinit size_t page_size = 0;

Range* range_of(uintptr_t address) {
  for (Block* block = &first_block; block; block = block->next.load(std::memory_order_acquire)) {
    for (Range& range : block->ranges) {
      const uintptr_t end = range.end.load(std::memory_order_acquire);
      if (address < end && address >= range.begin.load(std::memory_order_relaxed)) return &range;
    }
  }
  return nullptr;
}

// Maps zeros from the page of `address` to the end of the mapping: if one page is missing, so are those behind it.
bool fill(uintptr_t address) {
  Range* range = range_of(address);
  if (!range) return false;
  const uintptr_t page = address / page_size * page_size;
  range->has_holes.store(true, std::memory_order_relaxed);
  return mmap(reinterpret_cast<void*>(page), range->end.load(std::memory_order_relaxed) - page, PROT_READ,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

void handle(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool filled = info->si_code > 0 && fill(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = error;
  if (filled) return;
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler == SIG_DFL || (before.sa_handler == SIG_IGN && info->si_code > 0)) {
    // Restores the default action: the signal comes again after this handler has returned.
    struct sigaction none{};
    none.sa_handler = SIG_DFL;
    sigaction(signal, &none, nullptr);
    if (info->si_code <= 0) raise(signal);
  } else if (before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  }
}

bool install() {
  const char* wanted = environment("TREADLE_SIGBUS");
  if (wanted && std::string_view(wanted) == "off") return false;
  page_size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  struct sigaction ours{};
  ours.sa_sigaction = handle;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&ours.sa_mask);
  return sigaction(SIGBUS, nullptr, &before) == 0 && sigaction(SIGBUS, &ours, nullptr) == 0;
}

Range* take_range() {
  for (Block* block = &first_block;; block = block->next) {
    for (Range& range : block->ranges) {
      if (range.end == 0) return &range;
    }
    if (!block->next) block->next = new (std::nothrow) Block;
    if (!block->next) return nullptr;
  }
}

}  // namespace

WatchedMapping::WatchedMapping(const void* begin, size_t bytes) {
  const NoFork whole;
  const std::lock_guard lock(changing);
  static const bool installed = install();
  range_ = installed ? take_range() : nullptr;
  if (!range_) return;
  const auto address = reinterpret_cast<uintptr_t>(begin);
  range_->has_holes = false;
  range_->begin = address;
  range_->end.store(address + (bytes + page_size - 1) / page_size * page_size, std::memory_order_release);
}

WatchedMapping::~WatchedMapping() {
  if (range_) range_->end.store(0, std::memory_order_release);
}

WatchedMapping::WatchedMapping(WatchedMapping&& other) noexcept : range_(std::exchange(other.range_, nullptr)) {}

WatchedMapping& WatchedMapping::operator=(WatchedMapping&& other) noexcept {
  std::swap(range_, other.range_);
  return *this;
}

bool WatchedMapping::has_holes() const {
  return range_ && range_->has_holes.load(std::memory_order_relaxed);
}

}  // namespace treadle::wire
