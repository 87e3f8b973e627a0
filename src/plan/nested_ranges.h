#pragma once
// Ranges of a program's instructions that are nested or disjoint: loops, branches, pipelines.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace treadle::plan {

class NestedRanges {
 public:
  struct Range {
    uint32_t begin = 0, end = 0;  // instructions begin, ..., end - 1
  };

  // For a program of `code` instructions. Each range follows the ranges around it.
  NestedRanges(std::span<const Range> ranges, size_t code);

  // The outermost of the ranges that contain `at` and begin behind `behind`; null if there is none. Takes time
  // proportional to the depth of nesting there.
  const Range* outermost(uint32_t at, int64_t behind = -1) const;
  // The index of the range in `ranges`.
  size_t index(const Range& range) const { return static_cast<size_t>(&range - ranges_.data()); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  std::vector<Range> ranges_;
  std::vector<uint32_t> around_;     // by range: the innermost range around it
  std::vector<uint32_t> innermost_;  // by instruction: the innermost range that contains it
};

}  // namespace treadle::plan
