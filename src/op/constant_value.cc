#include "op/constant_value.h"

#include <algorithm>
#include <type_traits>

namespace treadle {

namespace {

template <class T>
Result<Tensor> vector_of(ElementType type, std::span<const T> values) {
  TREADLE_ASSIGN(Tensor t, Tensor::allocate(type, {static_cast<int64_t>(values.size())}));
  using Element = std::conditional_t<std::is_same_v<T, std::string>, String, T>;
  std::copy(values.begin(), values.end(), t.mutable_data<Element>());
  return t;
}

}  // namespace

Result<Tensor> constant_value(const ir::Attribute& attribute) {
  switch (attribute.kind) {
    case ir::AttributeKind::kFloat:
      return Tensor::scalar(ElementType::kFloat, attribute.as_float());
    case ir::AttributeKind::kInt:
      return Tensor::scalar(ElementType::kInt64, attribute.as_int());
    case ir::AttributeKind::kString:
      return Tensor::scalar(attribute.as_string());
    case ir::AttributeKind::kFloats:
      return vector_of(ElementType::kFloat, attribute.as_floats());
    case ir::AttributeKind::kInts:
      return vector_of(ElementType::kInt64, attribute.as_ints());
    case ir::AttributeKind::kStrings:
      return vector_of(ElementType::kString, attribute.as_strings());
    default:
      return Tensor(attribute.as_tensor());
  }
}

}  // namespace treadle
