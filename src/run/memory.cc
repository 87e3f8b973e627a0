#include "run/memory.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace treadle::run {

namespace {

constexpr size_t kMaxSpare = 8;

}  // namespace

GrowBuffer::GrowBuffer(GrowBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      account_(other.account_) {}

GrowBuffer::~GrowBuffer() {
  if (capacity_ > 0) account_->subtract(capacity_);
  std::free(data_);
}

bool GrowBuffer::reserve(size_t bytes, MemoryAccount& account) {
  if (bytes <= capacity_) return true;
  // The allocator remaps large blocks, so their contents are not copied.
  void* grown = std::realloc(data_, bytes);
  if (!grown) return false;
  if (capacity_ > 0) account_->subtract(capacity_);
  account.add(bytes);
  account_ = &account;
  data_ = static_cast<std::byte*>(grown);
  capacity_ = bytes;
  return true;
}

void GrowBuffer::trim(size_t bytes) {
  if (bytes == 0 || bytes >= capacity_ / 2) return;
  void* trimmed = std::realloc(data_, bytes);
  if (!trimmed) return;
  account_->subtract(capacity_ - bytes);
  data_ = static_cast<std::byte*>(trimmed);
  capacity_ = bytes;
}

BufferRef GrowBuffer::take(size_t bytes) {
  if (!data_ || bytes == 0) return BufferRef::allocate(bytes);
  trim(bytes);
  BufferRef taken = BufferRef::wrap(data_, bytes, true, std::free, data_);
  taken->count_on(*account_, std::exchange(capacity_, 0));
  data_ = nullptr;
  return taken;
}

RunMemory::~RunMemory() {
  account_->subtract(scratch_bytes());
}

Status RunMemory::begin(size_t limit, size_t arena, size_t held) {
  allocations_ = 0;
  is_limited_ = limit > 0;
  if (is_limited_ && arena > limit) {
    return error(Code::kLimit, "the memory limit of {} bytes is below what the plan needs: {} bytes", limit, arena);
  }
  // Tensors of an earlier run that the caller still holds do not count for this run.
  if (account_.use_count() > 1) renew_account();
  account_->begin(limit, held);
  account_->reset_peak();
  if (held == arena) return {};
  if (!account_->fits(arena - held)) return account_->refusal(arena - held, "what the plan holds");
  account_->begin(limit, arena);
  return {};
}

void RunMemory::renew_account() {
  account_->subtract(scratch_bytes());
  account_ = MemoryAccount::make();
  account_->add(scratch_bytes());
}

Status RunMemory::check(size_t more, const Dims& dims) {
  if (account_->fits(more)) return {};
  spare_.clear();
  return account_->fits(more) ? Status() : account_->refusal(more, "a tensor of shape " + to_string(dims));
}

BufferRef RunMemory::recycled(size_t bytes) {
  if (bytes < kLargeBytes) return {};
  for (BufferRef& spare : spare_) {
    if (spare->size() < bytes || spare->size() / 2 > bytes) continue;
    BufferRef memory = std::move(spare);
    spare = std::move(spare_.back());
    spare_.pop_back();
    return memory;
  }
  return {};
}

void RunMemory::recycle(const Tensor& tensor) {
  const bool whole = tensor.exclusive() && !is_string(tensor.type()) && tensor.raw() == tensor.buffer()->data();
  if (!whole || spare_.size() >= kMaxSpare) return;
  tensor.buffer()->seal();
  spare_.push_back(tensor.buffer());
}

Result<BufferRef> RunMemory::allocate_bytes(size_t bytes, const Dims& dims) {
  if (BufferRef memory = recycled(bytes)) return memory;
  TREADLE_TRY(check(bytes, dims));
  ++allocations_;
  BufferRef memory = MemoryAccount::allocate(account_, bytes);
  if (!memory) return error(Code::kLimit, "no memory for a tensor of shape {} ({} bytes)", to_string(dims), bytes);
  return memory;
}

Result<BufferRef> RunMemory::allocate_growable(size_t bytes, const Dims& dims) {
  TREADLE_TRY(check(bytes, dims));
  ++allocations_;
  BufferRef memory = MemoryAccount::allocate_growable(account_, bytes);
  if (!memory) return error(Code::kLimit, "no memory for a tensor of shape {} ({} bytes)", to_string(dims), bytes);
  return memory;
}

Result<Tensor> RunMemory::allocate(ElementType type, const Dims& dims) {
  TREADLE_ASSIGN(const int64_t count, element_count(dims));
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(count), byte_width(type), &bytes) || bytes > (size_t{1} << 62)) {
    return error(Code::kLimit, "a tensor of shape {} does not fit into memory", to_string(dims));
  }
  if (is_string(type)) {
    ++allocations_;
    const MemoryScope counted(account_);
    return Tensor::allocate(type, dims);
  }
  TREADLE_ASSIGN(BufferRef memory, allocate_bytes(bytes, dims));
  return Tensor::from_buffer(type, dims, std::move(memory));
}

bool RunMemory::grow(Buffer& memory, size_t bytes) {
  return account_->fits(bytes - memory.size()) && MemoryAccount::grow(*account_, memory, bytes);
}

Status RunMemory::grow(GrowBuffer& rows, size_t needed, size_t want) {
  const size_t have = rows.capacity();
  if (!account_->fits(want - have)) spare_.clear();
  if (!account_->fits(want - have)) {
    // Close to the limit a buffer takes all that is left at once, so that it does not grow row by row.
    want = std::min(want, have + account_->room());
    if (want < needed) return account_->refusal(needed - have, "a scan output");
  }
  ++allocations_;
  if (!rows.reserve(want, *account_)) return error(Code::kLimit, "no memory for {} bytes of scan output", want);
  return {};
}

size_t RunMemory::with_room_to_grow(size_t bytes, size_t have) {
  const size_t want = bytes <= SIZE_MAX / 2 ? 2 * bytes : bytes;
  if (account_->fits(want - have)) return want;
  spare_.clear();
  const size_t most = have + account_->room();
  if (most >= want) return want;
  // Half of the room that is left: the limit is reached in a few steps, and other values find room as well.
  return most > bytes ? bytes + (most - bytes) / 2 : bytes;
}

Result<std::byte*> RunMemory::scratch(size_t bytes) {
  if (scratch_ && scratch_->size() >= bytes) return scratch_->data();
  ++allocations_;
  // Scratch that has grown will grow again. Small scratch gets twice the room, large scratch one and a half times the
  // room, if the limit allows.
  size_t room = !scratch_ ? 0 : bytes < kLargeBytes ? bytes : bytes / 2;
  if (!account_->fits(bytes + room)) room = 0;
  if (!account_->fits(bytes)) return account_->refusal(bytes, "what the kernel works in");
  BufferRef larger = BufferRef::allocate(bytes + room);
  if (!larger) return error(Code::kLimit, "no memory for {} bytes of scratch", bytes);
  account_->subtract(scratch_bytes());
  scratch_ = std::move(larger);
  account_->add(scratch_bytes());
  return scratch_->data();
}

}  // namespace treadle::run
