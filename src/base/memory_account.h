#pragma once
// Counts the tensors and the temporary memory of a piece of work until the last reference to each goes, and bounds the
// count.

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <string_view>

#include "base/buffer.h"
#include "base/counted.h"
#include "base/status.h"

namespace treadle {

class MemoryAccount {
 public:
  // `whole`: the account of the larger work that this is a part of; bytes counted here are counted there as well. An
  // account lives as long as it has an owner or counts any bytes.
  static std::shared_ptr<MemoryAccount> make(std::shared_ptr<MemoryAccount> whole = nullptr);
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  // Begins work that may take `limit` bytes, of which it holds `elsewhere` in memory that is not counted here. Limit 0:
  // a large request is compared with what the machine, or a control group of the process, has left, so that an error
  // comes before the system ends the process.
  void begin(size_t limit, size_t elsewhere = 0);
  // Whether the work may take `bytes` more.
  bool fits(size_t bytes);
  // How many bytes the work may still take.
  size_t room() const;
  // The error of a request that does not fit. `what`: such as "a tensor of shape [3,4]".
  Status refusal(size_t bytes, std::string_view what) const;

  // Memory that is counted on `account` as long as it lives. Null if it is refused.
  static BufferRef allocate(const std::shared_ptr<MemoryAccount>& account, size_t bytes);

  static BufferRef allocate_growable(const std::shared_ptr<MemoryAccount>& account, size_t bytes);

  // Makes memory `bytes` long that is counted on `account` (Buffer::grow). False if that is not possible.
  static bool grow(MemoryAccount& account, Buffer& memory, size_t bytes);

  // Counts new `memory` as long as it lives. The caller has added its bytes (`added`) before.
  static BufferRef adopt(const std::shared_ptr<MemoryAccount>& account, BufferRef memory, size_t added);

  // For memory that other code allocates.
  void add(size_t bytes);
  void subtract(size_t bytes);

  size_t live() const { return live_.load(std::memory_order_relaxed) - kHeld; }
  size_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_.store(live(), std::memory_order_relaxed); }

 private:
  // Added to the count while the account has an owner, so that one number tells when the account can be freed.
  static constexpr size_t kHeld = size_t{1} << 62;

  explicit MemoryAccount(std::shared_ptr<MemoryAccount> whole) : whole_(std::move(whole)) {}
  ~MemoryAccount();
  bool machine_grants(size_t bytes, size_t held);
  void tell(size_t held);
  void let_go(size_t units);

  const std::shared_ptr<MemoryAccount> whole_;
  std::atomic<size_t> live_{kHeld}, peak_{0};
  size_t limit_ = 0, elsewhere_ = 0;
  std::atomic<size_t> told_{0};     // megabytes reported to the sum of the process
  std::atomic<size_t> granted_{0};  // without a limit: the machine is not asked again before the count exceeds this
};

// While a scope lives, `Tensor::allocate` and CountedAllocator on its thread count on an account, and fail if the
// account refuses. Small tensors are counted but never refused, since code that makes a scalar has no way to fail. So
// the code that opens a scope has to look at the account from time to time.
class MemoryScope {
 public:
  enum class Refuses : bool { kNothing, kWhatDoesNotFit };
  // `account` must outlive the scope.
  explicit MemoryScope(const std::shared_ptr<MemoryAccount>& account, Refuses refuses = Refuses::kWhatDoesNotFit);
  explicit MemoryScope(std::shared_ptr<MemoryAccount>&& account, Refuses refuses = Refuses::kWhatDoesNotFit) = delete;
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  // The innermost scope of this thread; null if there is none.
  static const MemoryScope* current();
  // Makes `scope`, which may be another thread's, current on this thread. Returns the one before.
  static const MemoryScope* exchange(const MemoryScope* scope);

  bool fits(size_t bytes) const;
  const std::shared_ptr<MemoryAccount>& account() const { return account_; }
  bool refuses() const { return refuses_ == Refuses::kWhatDoesNotFit; }

 private:
  const std::shared_ptr<MemoryAccount>& account_;
  const Refuses refuses_;
  const MemoryScope* const outer_;
};

// Thrown by CountedAllocator if the account of the thread's scope refuses.
class MemoryRefused final : public std::bad_alloc {
 public:
  MemoryRefused(std::shared_ptr<MemoryAccount> account, size_t bytes) : account_(std::move(account)), bytes_(bytes) {}
  const char* what() const noexcept override { return "the memory limit was reached"; }
  Status status(std::string_view what) const { return account_->refusal(bytes_, what); }
  size_t bytes() const { return bytes_; }  // the size of the refused request

 private:
  std::shared_ptr<MemoryAccount> account_;
  size_t bytes_;
};

// Calls `work`, which returns a Status. Turns refused memory, called `what` in the message, into an error.
template <class Work>
Status within_memory(Work&& work, std::string_view what = "what the operator works in") {
  try {
    return work();
  } catch (const MemoryRefused& refused) {
    return refused.status(what);
  }
}

}  // namespace treadle
