#pragma once
// Sizes of this machine's caches. Kernels choose their block sizes by them.

#include <cstddef>

namespace treadle {

struct Caches {
  size_t first = size_t{32} << 10;  // bytes of first-level data cache
  size_t second = size_t{512} << 10;
  size_t third = size_t{8} << 20;  // shared by several cores
};

// As the processor reports them; the defaults above for a level that it does not report. Read once.
const Caches& caches();

}  // namespace treadle
