#pragma once
// What the tensors and the temporary memory of a piece of work take, counted until the last reference to them goes,
// wherever that is, and what they may take.

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
  // `whole`: the account of the work that this is a part of; what is taken here is taken there as well. An account
  // lives as long as somebody holds it, or something is counted on it.
  static std::shared_ptr<MemoryAccount> make(std::shared_ptr<MemoryAccount> whole = nullptr);
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  // Work begins that may take `limit` bytes, `elsewhere` of which it holds in memory that is not counted here. A limit
  // of 0: what the machine, or a control group of the process, has left when much is asked for, so that an error comes
  // before the system ends the process.
  void begin(size_t limit, size_t elsewhere = 0);
  // Whether so much more may be taken.
  bool fits(size_t bytes);
  // What may still be taken.
  size_t room() const;
  // The error of what did not fit; `what`: "a tensor of shape [3,4]".
  Status refusal(size_t bytes, std::string_view what) const;

  // Memory that is counted while it lives, on `account`, which lives as long. Null when it cannot be had.
  static BufferRef allocate(const std::shared_ptr<MemoryAccount>& account, size_t bytes);

  static BufferRef allocate_growable(const std::shared_ptr<MemoryAccount>& account, size_t bytes);

  // The same memory made so much longer, where it is counted on `account` and can grow in place (Buffer::grow).
  static bool grow(MemoryAccount& account, Buffer& memory, size_t bytes);

  // `memory`, new and whose bytes have been added before, counted while it lives.
  static BufferRef adopt(const std::shared_ptr<MemoryAccount>& account, BufferRef memory, size_t added);

  // For memory that is allocated elsewhere.
  void add(size_t bytes);
  void subtract(size_t bytes);

  size_t live() const { return live_.load(std::memory_order_relaxed) - kHeld; }
  size_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_.store(live(), std::memory_order_relaxed); }

 private:
  // Counted with the bytes while somebody holds the account, so that one number says when nobody needs it.
  static constexpr size_t kHeld = size_t{1} << 62;

  explicit MemoryAccount(std::shared_ptr<MemoryAccount> whole) : whole_(std::move(whole)) {}
  ~MemoryAccount();
  bool machine_grants(size_t bytes, size_t held);
  void tell(size_t held);
  void let_go(size_t units);

  const std::shared_ptr<MemoryAccount> whole_;
  std::atomic<size_t> live_{kHeld}, peak_{0};
  size_t limit_ = 0, elsewhere_ = 0;
  std::atomic<size_t> told_{0};     // megabytes that are counted among those of the process
  std::atomic<size_t> granted_{0};  // without a limit: up to here the machine need not be asked
};

// While it lives, `Tensor::allocate` and CountedAllocator on its thread count on an account and take what that lets
// them. Small tensors are counted but never refused, for code that makes a scalar has no way to fail: who opens a scope
// looks at the account from time to time.
class MemoryScope {
 public:
  enum class Refuses : bool { kNothing, kWhatDoesNotFit };
  // `account` must outlive the scope.
  explicit MemoryScope(const std::shared_ptr<MemoryAccount>& account, Refuses refuses = Refuses::kWhatDoesNotFit);
  explicit MemoryScope(std::shared_ptr<MemoryAccount>&& account, Refuses refuses = Refuses::kWhatDoesNotFit) = delete;
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  // The innermost one of this thread; null outside of all.
  static const MemoryScope* current();
  // Lends this thread another's scope, and returns the one before.
  static const MemoryScope* exchange(const MemoryScope* scope);

  bool fits(size_t bytes) const;
  const std::shared_ptr<MemoryAccount>& account() const { return account_; }
  bool refuses() const { return refuses_ == Refuses::kWhatDoesNotFit; }

 private:
  const std::shared_ptr<MemoryAccount>& account_;
  const Refuses refuses_;
  const MemoryScope* const outer_;
};

// What CountedAllocator throws where the account of its thread's scope refuses.
class MemoryRefused final : public std::bad_alloc {
 public:
  MemoryRefused(std::shared_ptr<MemoryAccount> account, size_t bytes) : account_(std::move(account)), bytes_(bytes) {}
  const char* what() const noexcept override { return "the memory limit was reached"; }
  Status status(std::string_view what) const { return account_->refusal(bytes_, what); }
  size_t bytes() const { return bytes_; }  // that were asked for

 private:
  std::shared_ptr<MemoryAccount> account_;
  size_t bytes_;
};

// Runs `work`, which returns a Status; that it was refused memory, for `what`, is its error.
template <class Work>
Status within_memory(Work&& work, std::string_view what = "what the operator works in") {
  try {
    return work();
  } catch (const MemoryRefused& refused) {
    return refused.status(what);
  }
}

}  // namespace treadle
