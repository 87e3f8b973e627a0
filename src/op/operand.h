#pragma once

#include "type/element_type.h"
#include "type/shape.h"

namespace treadle {

// A tensor operand of known sizes, as preparation sees it.
struct Operand {
  ElementType type = ElementType::kUndefined;  // kUndefined: left out
  Dims dims;
  Dims strides;                    // in elements; row-major unless the operator accepts any strides for this operand
  const void* constant = nullptr;  // the contents, if they cannot change while this preparation lives
  int64_t start = 0;               // for a part of a larger tensor: offset of the first element in memory, in elements
  bool is_part = false;            // only for operators that copy (tensor_ops::set_copies_kernel)

  bool present() const { return type != ElementType::kUndefined; }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t element_count() const { return element_count_unchecked(dims); }
  size_t byte_size() const { return static_cast<size_t>(element_count()) * byte_width(type); }
};

}  // namespace treadle
