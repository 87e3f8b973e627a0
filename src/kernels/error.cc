#include "kernels/error.h"

namespace treadle::kernels {

std::string_view error_message(uint32_t error) {
  switch (error) {
    case kOk:
      return "no error";
    case kDivisionByZero:
      return "integer division by zero";
    case kIndexOutOfRange:
      return "an index is out of range";
    default:
      return "the kernel failed";
  }
}

}  // namespace treadle::kernels
