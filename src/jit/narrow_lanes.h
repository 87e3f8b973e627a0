#pragma once
// Elements of 8 and 16 bits in IR. A lane holds an element as memory holds it, floats as their bits; steps widen it to
// the type that kernels compute with, and narrow what they have made. LLVM takes away what integers do not need of it.

#include "jit/ir_lanes.h"
#include "type/element_type.h"

namespace treadle::jit {

inline bool is_narrow(ElementType type) {
  return wide_type(type) != type;
}

// From `type` to wide_type(type), and back as Cast does it: integers wrap, floats round to nearest, ties to even. Other
// types stay as they are.
llvm::Value* widen(ElementType type, llvm::Value* x);
llvm::Value* narrow(ElementType type, llvm::Value* x);

// Of floats, to a wider type.
llvm::Value* extend(llvm::Value* x, llvm::Type* to);

// double_to_float_odd() of base/float_formats.h: what a double becomes on its way to a narrow float.
llvm::Value* to_float_odd(llvm::Value* x);

}  // namespace treadle::jit
