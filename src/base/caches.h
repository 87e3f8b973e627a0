#pragma once
// How large the caches of this machine are. Blocks of kernels are cut by it.

#include <cstddef>

namespace treadle {

struct Caches {
  size_t first = size_t{32} << 10;  // bytes: data of the first level,
  size_t second = size_t{512} << 10;
  size_t third = size_t{8} << 20;  // shared by several cores
};

// As the processor tells; the sizes above for a level that it says nothing about. Read once.
const Caches& caches();

}  // namespace treadle
