#pragma once
// Memory that several sessions read: a number that is never given twice says which memory it is, also where another
// piece lies at the same address later. So what is made of shared memory (packed weights) can be shared as well.

#include <cstddef>
#include <cstdint>
#include <utility>

namespace treadle {

class SharedRange {
 public:
  SharedRange() = default;
  // The bytes stay where and as they are while this lives.
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
  const std::byte* end_ = nullptr;  // null: nothing is registered
};

struct SharedPlace {
  uint64_t range = 0;  // the number of the memory; 0: no range holds the bytes
  uint64_t offset = 0;
};
// Where these bytes lie in shared memory.
SharedPlace shared_place(const void* data, size_t bytes);

}  // namespace treadle
