#pragma once
// What a kernel's run returns: 0, or why it failed.

#include <cstdint>
#include <string_view>

namespace treadle::kernels {

enum Error : uint32_t {
  kOk = 0,
  kDivisionByZero,
  kIndexOutOfRange,
};

std::string_view error_message(uint32_t error);  // a sentence without its full stop, e.g. "integer division by zero"

}  // namespace treadle::kernels
