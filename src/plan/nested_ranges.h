#pragma once
// Ranges of a program's instructions that lie inside each other or apart: loops, branches, pipelines.

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

  // Of a program of `code` instructions. In `ranges` each stands behind those that it lies inside of.
  NestedRanges(std::span<const Range> ranges, size_t code);

  // Of the ranges that `at` lies in and that begin behind `behind`, the outermost; null where there is none. Takes as
  // long as ranges lie inside each other there.
  const Range* outermost(uint32_t at, int64_t behind = -1) const;
  // Its number in `ranges`.
  size_t index(const Range& range) const { return static_cast<size_t>(&range - ranges_.data()); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  std::vector<Range> ranges_;
  std::vector<uint32_t> around_;     // each range: the innermost one around the range
  std::vector<uint32_t> innermost_;  // each instruction: the innermost range that the instruction lies in
};

}  // namespace treadle::plan
