#pragma once
// Neighbouring elements in one register, in C: the code gets faster by them, not different. Where a processor has no
// vectors that round as single elements do, a vector is one element.

#include <string>

#include "c/functions.h"

namespace treadle::c {

// As wide as registers are; of 16 bytes; or always one element.
enum class Width { kFull, kBrief, kSingle };

struct Vectors {
  std::string type;   // a typedef
  std::string lanes;  // how many elements it has, a ptrdiff_t
  std::string load;   // f(pointer)
  std::string store;  // f(pointer, vector)
  std::string splat;  // f(element)
};
Vectors vectors(Functions& functions, ElementType type, Width width = Width::kFull);
// f(a, b, c): a * b + c in each lane, rounded as multiply-adds of single elements are; integers wrap.
std::string vector_multiply_add(Functions& functions, ElementType type, Width width = Width::kFull);

}  // namespace treadle::c
