#pragma once
// Memory that several sessions read. Each range gets a number that is never given twice, so it names the memory even if
// other memory lies at the same address later. What is made from shared memory (packed weights) can then be shared,
// too.

#include <cstddef>
#include <cstdint>
#include <utility>

namespace treadle {

class SharedRange {
 public:
  SharedRange() = default;
  // The bytes must neither move nor change while this lives.
  SharedRange(const void* data, size_t bytes);
  ~SharedRange();
  SharedRange(const SharedRange&) = delete;
  SharedRange& operator=(const SharedRange&) = delete;
  SharedRange(SharedRange&& other) noexcept : end_(std::exchange(other.end_, nullptr)) {}
  SharedRange& operator=(SharedRange&& other) noexcept {
    std::swap(end_, other.end_);
    return *this;
  }

 private:
  const std::byte* end_ = nullptr;  // null: not registered
};

struct RangeOffset {
  uint64_t range = 0;  // the number of the range; 0: no range holds the bytes
  uint64_t offset = 0;
};
// The range that holds these bytes, and their offset in it.
RangeOffset range_offset(const void* data, size_t bytes);

}  // namespace treadle
