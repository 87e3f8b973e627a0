#pragma once
// How whole random numbers become uniform numbers of a range.

#include "ir/attribute.h"
#include "type/element_type.h"

namespace treadle::random {

// Number z of `bits` bits becomes low + step z, but at most `most`; computed in double or float.
struct UniformRange {
  bool is_double = false;
  int bits = 0;
  double low = 0, step = 0, most = 0;
};

// By the attributes `low` and `high`.
UniformRange uniform_range(const ir::Attributes& attributes, ElementType type);

}  // namespace treadle::random
