#include "model/attributes.h"

#include "model/types.h"

namespace treadle::model {

using ir::Attribute;
using ir::AttributeKind;

AttributeKind attribute_kind(const wire::AttributeProto& proto) {
  if (proto.type >= 1 && proto.type <= 14) return static_cast<AttributeKind>(proto.type.get());
  if (proto.type != 0) return AttributeKind::kUndefined;
  if (proto.f) return AttributeKind::kFloat;
  if (proto.i) return AttributeKind::kInt;
  if (proto.s) return AttributeKind::kString;
  if (proto.t) return AttributeKind::kTensor;
  if (proto.g) return AttributeKind::kGraph;
  if (!proto.floats.empty()) return AttributeKind::kFloats;
  if (!proto.ints.empty()) return AttributeKind::kInts;
  if (!proto.strings.empty()) return AttributeKind::kStrings;
  if (!proto.tensors.empty()) return AttributeKind::kTensors;
  if (!proto.graphs.empty()) return AttributeKind::kGraphs;
  return AttributeKind::kUndefined;
}

namespace {

Result<Attribute> read_tensors(Attribute attribute, const wire::AttributeProto& proto, TensorReader& tensors) {
  std::vector<Tensor> list;
  for (const wire::TensorProto& tensor : proto.tensors) {
    TREADLE_ASSIGN(Tensor read, tensors.read(tensor));
    list.push_back(std::move(read));
  }
  for (const wire::SparseTensorProto& tensor : proto.sparse_tensors) {
    TREADLE_ASSIGN(Tensor read, tensors.read_dense(tensor));
    list.push_back(std::move(read));
  }
  attribute.value = std::move(list);
  return attribute;
}

Result<Attribute> read_types(Attribute attribute, const wire::AttributeProto& proto) {
  std::vector<Type> list;
  for (const wire::TypeProto& type : proto.type_protos) {
    TREADLE_ASSIGN(Type read, read_type(type));
    list.push_back(std::move(read));
  }
  attribute.value = std::move(list);
  return attribute;
}

}  // namespace

Result<Attribute> read_attribute(std::string_view name, const wire::AttributeProto& proto, TensorReader& tensors) {
  Attribute attribute;
  attribute.name = name;
  attribute.kind = attribute_kind(proto);
  switch (attribute.kind) {
    case AttributeKind::kFloat:
      attribute.value = proto.f.value_or(0);
      return attribute;
    case AttributeKind::kInt:
      attribute.value = proto.i.value_or(0);
      return attribute;
    case AttributeKind::kString:
      attribute.value = std::string(proto.s.value_or(""));
      return attribute;
    case AttributeKind::kFloats:
      attribute.value = std::vector<float>(proto.floats.begin(), proto.floats.end());
      return attribute;
    case AttributeKind::kInts:
      attribute.value = std::vector<int64_t>(proto.ints.begin(), proto.ints.end());
      return attribute;
    case AttributeKind::kStrings:
      attribute.value = std::vector<std::string>(proto.strings.begin(), proto.strings.end());
      return attribute;
    case AttributeKind::kTensor: {
      if (!proto.t) break;
      TREADLE_ASSIGN(attribute.value, tensors.read(*proto.t));
      return attribute;
    }
    case AttributeKind::kSparseTensor: {
      if (!proto.sparse_tensor) break;
      TREADLE_ASSIGN(attribute.value, tensors.read_dense(*proto.sparse_tensor));
      return attribute;
    }
    case AttributeKind::kTypeProto: {
      if (!proto.tp) break;
      TREADLE_ASSIGN(attribute.value, read_type(*proto.tp));
      return attribute;
    }
    case AttributeKind::kTensors:
    case AttributeKind::kSparseTensors:
      return read_tensors(std::move(attribute), proto, tensors);
    case AttributeKind::kTypeProtos:
      return read_types(std::move(attribute), proto);
    case AttributeKind::kGraph:
    case AttributeKind::kGraphs:
    case AttributeKind::kUndefined:
      break;
  }
  return error(Code::kInvalidModel, "expected a value of attribute \"{}\", found none", name);
}

}  // namespace treadle::model
