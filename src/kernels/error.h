#pragma once
// The result of a kernel's run: 0, or the reason why it failed.

#include <cstdint>

namespace treadle::kernels {

enum Error : uint32_t {
  kOk = 0,
  kDivisionByZero,
  kIndexOutOfRange,
};

}  // namespace treadle::kernels
