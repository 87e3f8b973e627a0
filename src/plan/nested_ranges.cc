#include "plan/nested_ranges.h"

#include <algorithm>

namespace treadle::plan {

NestedRanges::NestedRanges(std::span<const Range> ranges, size_t code)
    : ranges_(ranges.begin(), ranges.end()), around_(ranges.size(), kNone), innermost_(code, kNone) {
  std::vector<std::vector<uint32_t>> begins(code);
  for (uint32_t i = 0; i < ranges_.size(); ++i) {
    if (ranges_[i].begin < ranges_[i].end) begins[ranges_[i].begin].push_back(i);
  }
  uint32_t open = kNone;
  for (uint32_t at = 0; at < code; ++at) {
    while (open != kNone && ranges_[open].end <= at) open = around_[open];
    for (const uint32_t i : begins[at]) {
      around_[i] = open;
      open = i;
    }
    innermost_[at] = open;
  }
}

const NestedRanges::Range* NestedRanges::outermost(uint32_t at, int64_t behind) const {
  const Range* found = nullptr;
  for (uint32_t i = innermost_[at]; i != kNone && ranges_[i].begin > behind; i = around_[i]) found = &ranges_[i];
  return found;
}

}  // namespace treadle::plan
