#pragma once
// The memory that a run takes beside the plan's arena: tensors whose sizes are known only at run time, rows of scan
// outputs, and scratch. One account counts all of it, and the run's memory limit bounds this count together with the
// arena. Each Context has a RunMemory, so that scratch stays from run to run.

#include <memory>
#include <vector>

#include "base/memory_account.h"
#include "type/tensor.h"

namespace treadle::run {

// Memory that grows with its contents kept, for rows of a scan output whose number is not known ahead.
class GrowBuffer {
 public:
  GrowBuffer() = default;
  GrowBuffer(const GrowBuffer&) = delete;
  GrowBuffer& operator=(const GrowBuffer&) = delete;
  GrowBuffer(GrowBuffer&& other) noexcept;
  ~GrowBuffer();

  std::byte* data() { return data_; }
  size_t capacity() const { return capacity_; }
  // Makes room for at least `bytes`, keeps the contents, and counts the memory on `account`. False: memory was refused.
  bool reserve(size_t bytes, MemoryAccount& account);
  // Gives the memory away as a buffer of `bytes`; the GrowBuffer is empty afterwards.
  BufferRef take(size_t bytes);

 private:
  void trim(size_t bytes);

  std::byte* data_ = nullptr;
  size_t capacity_ = 0;
  MemoryAccount* account_ = nullptr;  // has counted `capacity_` bytes
};

class RunMemory {
 public:
  // A handle keeps smaller memory from iteration to iteration. Larger buffers go to a free list that all values share.
  static constexpr size_t kLargeBytes = size_t{1} << 16;

  RunMemory() = default;
  ~RunMemory();
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  // Begins a run that may take `limit` bytes (0: as much as the machine has left). The plan's arena takes `arena` bytes
  // of them, of which `held` are allocated already. Errors: kLimit if the arena does not fit.
  Status begin(size_t limit, size_t arena, size_t held);
  // Ends a run, and frees the free list.
  void end() { spare_.clear(); }
  // Starts a new account: tensors of earlier runs count no longer, scratch does.
  void renew_account();

  bool is_limited() const { return is_limited_; }
  // Peak bytes of tensors and scratch since begin().
  size_t peak() const { return account_->peak(); }
  // How many allocations the run has made.
  int64_t allocations() const { return allocations_; }
  // Counts an allocation that other code made for the run.
  void count_allocation() { ++allocations_; }
  // The account for code that allocates tensors itself (MemoryScope).
  const std::shared_ptr<MemoryAccount>& account() const { return account_; }

  // Whether the run may take `more` bytes for a tensor of these sizes. Errors: kLimit.
  Status check(size_t more, const Dims& dims);
  // A tensor to be written. Errors: kLimit.
  Result<Tensor> allocate(ElementType type, const Dims& dims);
  // New or recycled memory for a tensor of these sizes. Errors: kLimit.
  Result<BufferRef> allocate_bytes(size_t bytes, const Dims& dims);
  // New memory that grow() can extend. Errors: kLimit.
  Result<BufferRef> allocate_growable(size_t bytes, const Dims& dims);
  // Makes memory `bytes` long, contents kept; the address may change. False: not possible, and nothing has changed.
  bool grow(Buffer& memory, size_t bytes);
  // Makes room for `needed` bytes of rows, and for `want` bytes if the limit allows. Errors: kLimit.
  Status grow(GrowBuffer& rows, size_t needed, size_t want);
  // The length to allocate for a value of `bytes` that grows and holds `have` bytes already: twice as much if the limit
  // allows, otherwise part of what is left.
  size_t with_room_to_grow(size_t bytes, size_t have);
  // Puts the memory of a released tensor on the free list, if it is large enough to be of use.
  void recycle(const Tensor& tensor);
  // Frees the free list.
  void drop_spare() { spare_.clear(); }
  // Scratch of at least `bytes`; kernels use it one after the other. Errors: kLimit.
  Result<std::byte*> scratch(size_t bytes);

 private:
  BufferRef recycled(size_t bytes);
  size_t scratch_bytes() const { return scratch_ ? scratch_->size() : 0; }

  std::shared_ptr<MemoryAccount> account_ = MemoryAccount::make();
  bool is_limited_ = false;
  int64_t allocations_ = 0;
  BufferRef scratch_;
  std::vector<BufferRef> spare_;  // the free list: large buffers that a loop has released
};

}  // namespace treadle::run
