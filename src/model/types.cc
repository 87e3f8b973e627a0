#include "model/types.h"

namespace treadle::model {

Result<ElementType> read_element_type(int64_t number) {
  const ElementType type = element_type_from_number(number);
  if (type != ElementType::kUndefined) return type;
  return error(Code::kInvalidModel, "expected an element type, found number {}", number);
}

namespace {

Dim read_dimension(const wire::Dimension& proto) {
  if (proto.value) return *proto.value >= 0 ? Dim(*proto.value) : Dim::unknown();
  // Several exporters write "?" for every unknown size.
  return proto.param.empty() || proto.param == "?" ? Dim::unknown() : Dim::symbol(proto.param);
}

Result<Type> read_tensor_type(const wire::TensorTypeProto& proto) {
  if (proto.elem_type == 0) return Type();
  TREADLE_ASSIGN(const ElementType element, read_element_type(proto.elem_type));
  if (!proto.shape) return Type::tensor(element);
  Shape shape;
  shape.reserve(proto.shape->dims.size());
  for (const wire::Dimension& dimension : proto.shape->dims) shape.push_back(read_dimension(dimension));
  return Type::tensor(element, std::move(shape));
}

Result<Type> read_child(const wire::TypeProto* proto) {
  return proto ? read_type(*proto) : Result<Type>(Type());
}

}  // namespace

Result<Type> read_type(const wire::TypeProto& proto) {
  if (proto.tensor) return read_tensor_type(*proto.tensor);
  if (proto.sequence) {
    TREADLE_ASSIGN(Type element, read_child(proto.sequence->elem_type));
    return Type::sequence(std::move(element));
  }
  if (proto.optional) {
    TREADLE_ASSIGN(Type element, read_child(proto.optional->elem_type));
    return Type::optional(std::move(element));
  }
  if (proto.map) {
    TREADLE_ASSIGN(const ElementType key, read_element_type(proto.map->key_type));
    TREADLE_ASSIGN(Type value, read_child(proto.map->value_type));
    return Type::map(key, std::move(value));
  }
  if (proto.sparse_tensor) {
    TREADLE_ASSIGN(Type type, read_tensor_type(*proto.sparse_tensor));
    if (type.is_known()) type.kind = Type::Kind::kSparseTensor;
    return type;
  }
  if (proto.opaque) {
    return error(Code::kNotImplemented, "opaque types ({}.{}) are not implemented", proto.opaque->domain,
                 proto.opaque->name);
  }
  return Type();
}

namespace {

wire::TensorTypeProto write_tensor_type(const Type& type, Arena& arena) {
  wire::TensorTypeProto proto;
  proto.elem_type = static_cast<int32_t>(type.element);
  if (!type.has_shape) return proto;
  proto.shape.emplace();
  for (const Dim& dim : type.shape) {
    wire::Dimension& written = proto.shape->dims.add(arena);
    if (dim.is_known()) {
      written.value = dim.value();
    } else if (dim.is_symbolic()) {
      written.param = arena.copy(dim.to_string());
    }
  }
  return proto;
}

}  // namespace

wire::TypeProto write_type(const Type& type, Arena& arena) {
  wire::TypeProto proto;
  const auto child = [&] { return arena.make<wire::TypeProto>(write_type(*type.child, arena)); };
  switch (type.kind) {
    case Type::Kind::kUnknown:
      break;
    case Type::Kind::kTensor:
      proto.tensor = write_tensor_type(type, arena);
      break;
    case Type::Kind::kSparseTensor:
      proto.sparse_tensor = arena.make<wire::TensorTypeProto>(write_tensor_type(type, arena));
      break;
    case Type::Kind::kSequence:
      proto.sequence = arena.make<wire::ElementTypeProto>();
      proto.sequence->elem_type = child();
      break;
    case Type::Kind::kOptional:
      proto.optional = arena.make<wire::ElementTypeProto>();
      proto.optional->elem_type = child();
      break;
    case Type::Kind::kMap:
      proto.map = arena.make<wire::MapTypeProto>();
      proto.map->key_type = static_cast<int32_t>(type.element);
      proto.map->value_type = child();
      break;
  }
  return proto;
}

}  // namespace treadle::model
