#pragma once
// What a kernel's run returns: 0, or why it failed.

#include <cstdint>

namespace treadle::kernels {

enum Error : uint32_t {
  kOk = 0,
  kDivisionByZero,
  kIndexOutOfRange,
};

}  // namespace treadle::kernels
