#pragma once
// Elements of 8 and 16 bits in IR. A lane holds an element as memory does, floats as their bits. Steps widen it to the
// type in which kernels compute, and narrow their results. For integers, LLVM removes conversions that change nothing.

#include "jit/ir_lanes.h"
#include "type/element_type.h"

namespace treadle::jit {

inline bool is_narrow(ElementType type) {
  return wide_type(type) != type;
}

// widen: from `type` to wide_type(type). narrow: back, as Cast does: integers wrap, floats round to nearest, ties to
// even. Other types stay as they are.
llvm::Value* widen(ElementType type, llvm::Value* x);
llvm::Value* narrow(ElementType type, llvm::Value* x);

// Extends floats to a wider type.
llvm::Value* extend(llvm::Value* x, llvm::Type* to);

// double_to_float_odd() of base/float_formats.h: the first rounding of a double to a narrow float.
llvm::Value* to_float_odd(llvm::Value* x);

}  // namespace treadle::jit
