#pragma once
// How convolutions of bytes with few filters in a group (depthwise ones, for example) are summed.

#include <cstdint>

namespace treadle::kernels {

// With fewer filters in a group, tiles of bytes do not pay.
inline constexpr int64_t kFewestByteFilters = 4;
// Whether sums are accumulated in floats: each sum is a whole number below 2^24, since a product is at most 255 * 255.
inline bool sums_fit_floats(int64_t groups, int64_t filters, int64_t weights_of_filter) {
  return groups > 1 && filters < kFewestByteFilters && weights_of_filter <= (int64_t{1} << 24) / (255 * 255);
}

}  // namespace treadle::kernels
