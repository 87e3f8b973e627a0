// Which ranges lie around an instruction.
#include "plan/nested_ranges.h"

#include <gtest/gtest.h>

namespace treadle::plan {
namespace {

// Checks all ranges, by the definition in the header.
const NestedRanges::Range* by_search(std::span<const NestedRanges::Range> ranges, uint32_t at, int64_t behind) {
  for (const NestedRanges::Range& range : ranges) {
    if (range.begin <= at && at < range.end && range.begin > behind) return &range;
  }
  return nullptr;
}

TEST(NestedRanges, FindsTheOutermostOneBehindAPlace) {
  const std::vector<NestedRanges::Range> ranges = {{1, 9}, {2, 4},   {4, 9},   {5, 8},
                                                   {6, 7}, {10, 11}, {12, 12}, {13, 16}};
  constexpr size_t kCode = 16;
  const NestedRanges nested(ranges, kCode);
  for (uint32_t at = 0; at < kCode; ++at) {
    for (int64_t behind = -1; behind < static_cast<int64_t>(kCode); ++behind) {
      const NestedRanges::Range* expected = by_search(ranges, at, behind);
      const NestedRanges::Range* found = nested.outermost(at, behind);
      ASSERT_EQ(found == nullptr, expected == nullptr) << at << " behind " << behind;
      if (found) EXPECT_EQ(nested.index(*found), static_cast<size_t>(expected - ranges.data()));
    }
  }
}

TEST(NestedRanges, OfNothing) {
  EXPECT_EQ(NestedRanges({}, 3).outermost(2), nullptr);
}

}  // namespace
}  // namespace treadle::plan
