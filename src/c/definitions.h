#pragma once
// The definitions of elementwise operations, evaluated over values that write C. Compiled once for each compute type:
// definitions_<type>.cc.

#include <string>

#include "kernels/elementwise_ops.h"

namespace treadle::c {

struct Definition {
  std::string result;           // of a, b and c; empty: not evaluated, or the definition calls the C library
  bool has_parameters = false;  // alpha and beta
};

// T: float, double, int32_t, uint32_t, int64_t, uint64_t, and uint8_t for bool.
template <class T>
Definition definition(kernels::ElementwiseOp op, bool evaluates);

}  // namespace treadle::c
