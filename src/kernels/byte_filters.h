#pragma once
// How convolutions of bytes with few filters in a group, as depthwise ones have, are summed.

#include <cstdint>

namespace treadle::kernels {

// Fewer filters in a group than these are too few for tiles of bytes.
inline constexpr int64_t kFewestByteFilters = 4;
// Whether sums are added up as floats then: every one is a whole number below 2^24, of products of at most 255 * 255.
inline bool sums_fit_floats(int64_t groups, int64_t filters, int64_t weights_of_filter) {
  return groups > 1 && filters < kFewestByteFilters && weights_of_filter <= (int64_t{1} << 24) / (255 * 255);
}

}  // namespace treadle::kernels
