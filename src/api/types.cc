#include "api/handles.h"

using treadle::ElementType;
using treadle::Type;
using treadle::api::unwrap;

namespace {

treadle_kind kind_of(Type::Kind kind) {
  switch (kind) {
    case Type::Kind::kUnknown:
      return TREADLE_NONE;
    case Type::Kind::kTensor:
      return TREADLE_TENSOR;
    case Type::Kind::kSparseTensor:
      return TREADLE_SPARSE_TENSOR;
    case Type::Kind::kSequence:
      return TREADLE_SEQUENCE;
    case Type::Kind::kOptional:
      return TREADLE_OPTIONAL;
    case Type::Kind::kMap:
      return TREADLE_MAP;
  }
  return TREADLE_NONE;
}

Type without_sizes(const Type& type) {
  Type copy = type;
  copy.has_shape = false;
  copy.shape = {};
  if (type.child) copy.child = std::make_shared<const Type>(without_sizes(*type.child));
  return copy;
}

bool has_axis(const Type& type, int64_t axis) {
  return type.has_shape && axis >= 0 && axis < type.rank();
}

}  // namespace

extern "C" {

const char* treadle_element_name(int element) {
  const ElementType type = treadle::element_type_from_number(element);
  return type == ElementType::kUndefined ? nullptr : treadle::name(type).data();
}

size_t treadle_element_width(int element) {
  const ElementType type = treadle::element_type_from_number(element);
  return type == ElementType::kUndefined || is_string(type) ? 0 : byte_width(type);
}

treadle_kind treadle_type_kind(const treadle_type* type) {
  return type ? kind_of(unwrap(type)->kind) : TREADLE_NONE;
}

int treadle_type_element(const treadle_type* type) {
  return type ? static_cast<int>(unwrap(type)->element) : 0;
}

int64_t treadle_type_rank(const treadle_type* type) {
  return type ? unwrap(type)->rank() : -1;
}

int64_t treadle_type_dim(const treadle_type* type, int64_t axis) {
  if (!type || !has_axis(*unwrap(type), axis)) return -1;
  return unwrap(type)->shape[static_cast<size_t>(axis)].value_or(-1);
}

char* treadle_type_symbol(const treadle_type* type, int64_t axis) {
  if (!type || !has_axis(*unwrap(type), axis)) return nullptr;
  const treadle::Dim& dim = unwrap(type)->shape[static_cast<size_t>(axis)];
  return dim.is_symbolic() ? treadle::api::give_or_null([&] { return dim.to_string(); }) : nullptr;
}

const treadle_type* treadle_type_child(const treadle_type* type) {
  return type ? treadle::api::wrap(unwrap(type)->child.get()) : nullptr;
}

char* treadle_type_name(const treadle_type* type) {
  return type ? treadle::api::give_or_null([&] { return without_sizes(*unwrap(type)).to_string(); }) : nullptr;
}

char* treadle_type_text(const treadle_type* type) {
  return type ? treadle::api::give_or_null([&] { return unwrap(type)->to_string(); }) : nullptr;
}

}  // extern "C"
