#include "op/kernel.h"

#include <algorithm>

#include "base/stop.h"

namespace treadle {

KernelFailure& kernel_failure() {
  thread_local KernelFailure failure;
  return failure;
}

Status kernel_status(uint32_t code) {
  const auto [found, limit, position] = kernel_failure();
  switch (static_cast<KernelError>(code)) {
    case KernelError::kNone:
      return {};
    case KernelError::kDivisionByZero:
      return error(Code::kRuntime, "integer division by zero");
    case KernelError::kIndexOutOfRange:
      return error(Code::kRuntime, "index {} is out of range, expected {} to {}", found, -limit, limit - 1);
    case KernelError::kNegativeExponent:
      return error(Code::kRuntime, "integer to the power of {}: the exponent must not be negative", found);
    case KernelError::kInvalidValue:
      return error(Code::kRuntime, "invalid value {}", found);
    case KernelError::kShapeMismatch:
      return error(Code::kRuntime, "a size that the data decided is {}, expected {}", found, limit);
    case KernelError::kSequenceLength:
      return error(Code::kRuntime, "sequence_lens[{}] is {}, expected 0 to {}", position, found, limit);
    case KernelError::kStopped:
      return stopped();
  }
  return error(Code::kInternal, "kernel error {}", code);
}

void* StateArena::allocate(size_t bytes, size_t alignment) {
  constexpr size_t kBlock = 1024;
  // An object that is made here must not be lost because there is no memory to remember it.
  if (cleanups_.size() == cleanups_.capacity()) cleanups_.reserve(std::max<size_t>(4, 2 * cleanups_.size()));
  auto aligned = [&] {
    const auto address = reinterpret_cast<uintptr_t>(next_);
    return (alignment - address % alignment) % alignment;
  };
  if (!next_ || aligned() + bytes > left_) {
    const size_t size = std::max(kBlock, bytes + alignment);
    blocks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
    next_ = blocks_.back().memory.get();
    left_ = size;
  }
  const size_t padding = aligned();
  std::byte* memory = next_ + padding;
  next_ += padding + bytes;
  left_ -= padding + bytes;
  return memory;
}

void StateArena::clear() {
  for (size_t i = cleanups_.size(); i-- > 0;) cleanups_[i].destroy(cleanups_[i].object);
  cleanups_.clear();
  if (blocks_.empty()) return;
  // One block stays for the next states.
  blocks_.erase(blocks_.begin() + 1, blocks_.end());
  next_ = blocks_[0].memory.get();
  left_ = blocks_[0].size;
}

}  // namespace treadle
