#pragma once
// The memory that a run takes beside the plan's arena: tensors whose sizes are known only at run time, rows of scan
// outputs, and scratch. All of it is counted on one account, which the run's memory limit bounds together with the
// arena. One per Context, so that scratch stays from run to run.

#include <memory>
#include <vector>

#include "base/memory_account.h"
#include "type/tensor.h"

namespace treadle::run {

// Memory that grows without moving its contents by hand: rows of a scan output whose number is not known ahead.
class GrowBuffer {
 public:
  GrowBuffer() = default;
  GrowBuffer(const GrowBuffer&) = delete;
  GrowBuffer& operator=(const GrowBuffer&) = delete;
  GrowBuffer(GrowBuffer&& other) noexcept;
  ~GrowBuffer();

  std::byte* data() { return data_; }
  size_t capacity() const { return capacity_; }
  // At least `bytes`, contents kept, counted on `account`. False when memory cannot be had.
  bool reserve(size_t bytes, MemoryAccount& account);
  // Hands the memory over as a buffer of `bytes`, and is empty afterwards.
  BufferRef take(size_t bytes);

 private:
  void trim(size_t bytes);

  std::byte* data_ = nullptr;
  size_t capacity_ = 0;
  MemoryAccount* account_ = nullptr;  // counts `capacity_`
};

class RunMemory {
 public:
  // A value keeps smaller memory from trip to trip; larger buffers are shared through a free list.
  static constexpr size_t kLargeBytes = size_t{1} << 16;

  RunMemory() = default;
  ~RunMemory();
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  // A run begins that may take `limit` bytes (0: what the machine has left), of which the plan's arena takes `arena`,
  // `held` of them already. Errors: kLimit, the arena does not fit.
  Status begin(size_t limit, size_t arena, size_t held);
  // The run has ended: nothing is kept for its next tensors.
  void end() { spare_.clear(); }
  // Tensors of earlier runs are counted no longer; scratch, which stays, is.
  void renew_account();

  bool is_limited() const { return is_limited_; }
  // Of tensors and scratch, in bytes: what they took at once since begin().
  size_t peak() const { return account_->peak(); }
  // How many times the run has asked for memory.
  int64_t allocations() const { return allocations_; }
  // Something outside of here asked for memory for the run.
  void count_allocation() { ++allocations_; }
  // For code that makes tensors by itself (MemoryScope).
  const std::shared_ptr<MemoryAccount>& account() const { return account_; }

  // Whether `more` bytes may be taken, for a tensor of these sizes. Errors: kLimit.
  Status check(size_t more, const Dims& dims);
  // A tensor to be written. Errors: kLimit.
  Result<Tensor> allocate(ElementType type, const Dims& dims);
  // Memory, recycled or fresh, for a tensor of these sizes. Errors: kLimit.
  Result<BufferRef> allocate_bytes(size_t bytes, const Dims& dims);
  // Fresh memory that grow() may make longer. Errors: kLimit.
  Result<BufferRef> allocate_growable(size_t bytes, const Dims& dims);
  // Makes memory longer where it lies. False where that cannot be: nothing has changed.
  bool grow(Buffer& memory, size_t bytes);
  // Room for `needed` bytes of rows, better for `want`. Errors: kLimit.
  Status grow(GrowBuffer& rows, size_t needed, size_t want);
  // What memory that needs `bytes` is best made long, of which it has `have` already: twice as much while that may be
  // taken, else part of what is left.
  size_t with_room_to_grow(size_t bytes, size_t have);
  // Takes the memory of a tensor that is given up, where that is of use for what is made next.
  void recycle(const Tensor& tensor);
  // Gives up what was kept for what is made next.
  void drop_spare() { spare_.clear(); }
  // What a kernel works in, `bytes` at least; one kernel after the other. Errors: kLimit.
  Result<std::byte*> scratch(size_t bytes);

 private:
  BufferRef recycled(size_t bytes);
  size_t scratch_bytes() const { return scratch_ ? scratch_->size() : 0; }

  std::shared_ptr<MemoryAccount> account_ = MemoryAccount::make();
  bool is_limited_ = false;
  int64_t allocations_ = 0;
  BufferRef scratch_;
  std::vector<BufferRef> spare_;  // large memory given up in a loop, for what is made next
};

}  // namespace treadle::run
