#pragma once
// How ONNX text represents elements of tensors.

#include "base/float_formats.h"
#include "type/element_type.h"

namespace treadle::ir {

// Bytes of raw_data per number in the text; 0 for types without numbers. A complex element is two numbers. Elements
// narrower than a byte appear as the bytes into which they are packed.
inline size_t raw_width(ElementType type) {
  const ElementTypeInfo& about = info(type);
  if (about.type_class == TypeClass::kString) return 0;
  if (about.type_class == TypeClass::kComplex) return about.file_bits / 16u;
  return (about.file_bits + 7u) / 8u;
}

// The bits of the 16- or 8-bit float nearest to a value; false for other types.
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
