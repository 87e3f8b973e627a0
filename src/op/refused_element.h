#pragma once
// Why a kernel refuses one element of an operand, for the sentence that kernel_status makes of it:
//
//     return refuse_element({"target", i}, label, 0, classes - 1);   // "target[3] is 7, expected 0 to 4"

#include <cstdint>

#include "op/kernel.h"

namespace treadle {

struct ElementPlace {
  const char* operand;  // as the operator's specification calls it
  int64_t position;     // among its elements in row-major order; negative: it has only one
};

// Each gives what a kernel returns, and leaves the rest for kernel_status on the same thread. So they are of no use
// within parallel_kernel: a kernel over several threads looks at such elements first. `expected`: a literal.
uint32_t refuse_element(ElementPlace place, int64_t found, int64_t least, int64_t most);
uint32_t refuse_element(ElementPlace place, int64_t found, const char* expected);
uint32_t refuse_number(ElementPlace place, double found, const char* expected);

}  // namespace treadle
