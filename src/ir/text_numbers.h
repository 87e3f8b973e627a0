#pragma once
// How the elements of tensors stand in ONNX text.

#include "base/float_formats.h"
#include "type/element_type.h"

namespace treadle::ir {

// Bytes in raw_data per number in the text; 0 for types whose values are no numbers. Complex elements are two numbers.
// Of elements narrower than a byte the text has the bytes that they are packed in.
inline size_t raw_width(ElementType type) {
  const ElementTypeInfo& about = info(type);
  if (about.type_class == TypeClass::kString) return 0;
  if (about.type_class == TypeClass::kComplex) return about.file_bits / 16u;
  return (about.file_bits + 7u) / 8u;
}

// The bits of a 16- or 8-bit float that is nearest to a value; false for other types.
inline bool narrow_float_bits(ElementType type, float value, int64_t& bits) {
  switch (type) {
    case ElementType::kFloat16:
      bits = float_to_half(value);
      return true;
    case ElementType::kBfloat16:
      bits = float_to_bfloat16(value);
      return true;
    case ElementType::kFloat8e4m3fn:
      bits = formats::encode<formats::kFloat8e4m3fn, false>(value);
      return true;
    case ElementType::kFloat8e4m3fnuz:
      bits = formats::encode<formats::kFloat8e4m3fnuz, false>(value);
      return true;
    case ElementType::kFloat8e5m2:
      bits = formats::encode<formats::kFloat8e5m2, false>(value);
      return true;
    case ElementType::kFloat8e5m2fnuz:
      bits = formats::encode<formats::kFloat8e5m2fnuz, false>(value);
      return true;
    default:
      return false;
  }
}

}  // namespace treadle::ir
