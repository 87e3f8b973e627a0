#include "type/element_type.h"

#include <string>

namespace treadle {

ElementType element_type_from_name(std::string_view name) {
  for (int i = 1; i < kElementTypeCount; ++i) {
    if (kElementTypes[i].name == name) return static_cast<ElementType>(i);
  }
  return ElementType::kUndefined;
}

ElementType element_type_from_number(int64_t number) {
  return number > 0 && number < kElementTypeCount ? static_cast<ElementType>(number) : ElementType::kUndefined;
}

size_t byte_width(ComputeType type) {
  switch (type) {
    case ComputeType::kF32:
    case ComputeType::kI32:
    case ComputeType::kU32:
      return 4;
    case ComputeType::kF64:
    case ComputeType::kI64:
    case ComputeType::kU64:
      return 8;
    case ComputeType::kBool:
      return 1;
    case ComputeType::kNone:
      return 0;
  }
  return 0;
}

ElementType wide_type(ElementType type) {
  switch (compute_type(type)) {
    case ComputeType::kF32:
      return ElementType::kFloat;
    case ComputeType::kI32:
      return ElementType::kInt32;
    case ComputeType::kU32:
      return ElementType::kUint32;
    default:
      return type;
  }
}

}  // namespace treadle
