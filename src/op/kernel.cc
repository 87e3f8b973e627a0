#include "op/kernel.h"

#include <algorithm>

#include "base/stop.h"
#include "op/refused_element.h"

namespace treadle {

KernelFailure& kernel_failure() {
  thread_local KernelFailure failure;
  return failure;
}

namespace {

struct Refusal {
  OperandElement element;
  int64_t least, most;
  const char* expected;  // expected text, in place of the two bounds
  double number;         // the number found, for refuse_number
  bool is_number;
};

Refusal& refusal() {
  thread_local Refusal last{};
  return last;
}

Status refused_element(int64_t found) {
  const Refusal& r = refusal();
  const std::string where =
      r.element.position < 0 ? r.element.operand : fmt::format("{}[{}]", r.element.operand, r.element.position);
  const std::string what = r.is_number ? fmt::format("{}", r.number) : fmt::format("{}", found);
  if (r.expected) return error(Code::kRuntime, "{} is {}, expected {}", where, what, r.expected);
  return error(Code::kRuntime, "{} is {}, expected {} to {}", where, what, r.least, r.most);
}

}  // namespace

uint32_t refuse_element(OperandElement element, int64_t found, int64_t least, int64_t most) {
  refusal() = {element, least, most, nullptr, 0, false};
  return fail(KernelError::kInvalidValue, found);
}

uint32_t refuse_element(OperandElement element, int64_t found, const char* expected) {
  refusal() = {element, 0, 0, expected, 0, false};
  return fail(KernelError::kInvalidValue, found);
}

uint32_t refuse_number(OperandElement element, double found, const char* expected) {
  refusal() = {element, 0, 0, expected, found, true};
  return fail(KernelError::kInvalidValue);
}

Status kernel_status(uint32_t code) {
  const auto [found, limit, position] = kernel_failure();
  switch (static_cast<KernelError>(code)) {
    case KernelError::kNone:
      return {};
    case KernelError::kDivisionByZero:
      return error(Code::kRuntime, "integer division by zero: B holds 0, expected divisors other than 0");
    case KernelError::kIndexOutOfRange:
      return error(Code::kRuntime, "index {} is out of range, expected {} to {}", found, -limit, limit - 1);
    case KernelError::kNegativeExponent:
      return error(Code::kRuntime, "the exponent of an integer is {}, expected 0 or more", found);
    case KernelError::kInvalidValue:
      return refused_element(found);
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
  // Room to register the destructor is reserved first: without memory for it, the object would be lost.
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
  // Keeps one block for the next states.
  blocks_.erase(blocks_.begin() + 1, blocks_.end());
  next_ = blocks_[0].memory.get();
  left_ = blocks_[0].size;
}

}  // namespace treadle
