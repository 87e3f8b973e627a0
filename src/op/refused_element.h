#pragma once
// Errors of a kernel that refuses one element of an operand. kernel_status() makes the message:
//
//       return refuse_element({"target", i}, label, 0, classes - 1);   // "target[3] is 7, expected 0 to 4"

#include <cstdint>

#include "op/kernel.h"

namespace treadle {

struct OperandElement {
  const char* operand;  // the operand's name in the specification
  int64_t position;     // the element's index in row-major order; negative: the operand has one element
};

// Each returns the value that the kernel returns, and leaves the details for kernel_status() on the same thread. So
// they do not work within parallel_kernel(): a kernel over several threads checks such elements first. `expected`: a
// string literal.
uint32_t refuse_element(OperandElement element, int64_t found, int64_t least, int64_t most);
uint32_t refuse_element(OperandElement element, int64_t found, const char* expected);
uint32_t refuse_number(OperandElement element, double found, const char* expected);

}  // namespace treadle
