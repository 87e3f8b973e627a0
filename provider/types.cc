#include "types.h"

#include <cstdlib>
#include <cstring>

#include "tensors.h"

namespace treadle::provider {

namespace {

// Field numbers of onnx.proto: TypeProto, TypeProto.Tensor, .Sequence, .Map, .Optional, TensorShapeProto.
constexpr int kTensorType = 1, kSequenceType = 4, kMapType = 5, kOptionalType = 9;
constexpr int kElement = 1, kShape = 2, kMapKey = 1, kMapValue = 2, kDimension = 1, kDimValue = 1, kDimName = 2;

ONNXType kind_of(const OrtTypeInfo* type) {
  ONNXType kind{};
  check(ort().GetOnnxTypeFromTypeInfo(type, &kind));
  return kind;
}

const OrtTensorTypeAndShapeInfo* tensor_of(const OrtTypeInfo* type) {
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  check(ort().CastTypeInfoToTensorInfo(type, &tensor));
  return tensor;
}

int element_of(const OrtTensorTypeAndShapeInfo* tensor) {
  ONNXTensorElementDataType element{};
  check(ort().GetTensorElementType(tensor, &element));
  return element;
}

Message shape_message(const OrtTensorTypeAndShapeInfo* tensor) {
  const std::vector<int64_t> dims = list_of(ort().GetDimensionsCount, ort().GetDimensions, tensor);
  std::vector<const char*> symbols(dims.size());
  check(ort().GetSymbolicDimensions(tensor, symbols.data(), symbols.size()));
  Message shape;
  for (size_t i = 0; i < dims.size(); ++i) {
    Message dimension;
    if (dims[i] >= 0) {
      dimension.integer(kDimValue, dims[i]);
    } else if (symbols[i] && *symbols[i]) {
      dimension.text(kDimName, symbols[i]);
    }
    shape.message(kDimension, dimension);
  }
  return shape;
}

Message tensor_message(const OrtTypeInfo* type) {
  const OrtTensorTypeAndShapeInfo* tensor = tensor_of(type);
  Message message;
  message.integer(kElement, element_of(tensor));
  if (host().tells_unknown_rank() && ort().TensorTypeAndShape_HasShape(tensor)) {
    message.message(kShape, shape_message(tensor));
  }
  return message;
}

// Takes over a type that onnxruntime made for the caller, and frees it.
Message owned_message(OrtTypeInfo* type) {
  const std::unique_ptr<OrtTypeInfo, void (*)(OrtTypeInfo*)> owned(type, ort().ReleaseTypeInfo);
  return type_message(type);
}

Message sequence_message(const OrtTypeInfo* type) {
  const OrtSequenceTypeInfo* sequence = nullptr;
  OrtTypeInfo* element = nullptr;
  check(ort().CastTypeInfoToSequenceTypeInfo(type, &sequence));
  check(ort().GetSequenceElementType(sequence, &element));
  Message message;
  message.message(kElement, owned_message(element));
  return message;
}

Message optional_message(const OrtTypeInfo* type) {
  const OrtOptionalTypeInfo* optional = nullptr;
  OrtTypeInfo* contained = nullptr;
  check(ort().CastTypeInfoToOptionalTypeInfo(type, &optional));
  check(ort().GetOptionalContainedTypeInfo(optional, &contained));
  Message message;
  message.message(kElement, owned_message(contained));
  return message;
}

Message map_message(const OrtTypeInfo* type) {
  const OrtMapTypeInfo* map = nullptr;
  ONNXTensorElementDataType key{};
  OrtTypeInfo* value = nullptr;
  check(ort().CastTypeInfoToMapTypeInfo(type, &map));
  check(ort().GetMapKeyType(map, &key));
  check(ort().GetMapValueType(map, &value));
  Message message;
  message.integer(kMapKey, key);
  message.message(kMapValue, owned_message(value));
  return message;
}

}  // namespace

Message type_message(const OrtTypeInfo* type) {
  Message message;
  switch (kind_of(type)) {
    case ONNX_TYPE_TENSOR:
      message.message(kTensorType, tensor_message(type));
      break;
    case ONNX_TYPE_SEQUENCE:
      message.message(kSequenceType, sequence_message(type));
      break;
    case ONNX_TYPE_MAP:
      message.message(kMapType, map_message(type));
      break;
    case ONNX_TYPE_OPTIONAL:
      message.message(kOptionalType, optional_message(type));
      break;
    case ONNX_TYPE_UNKNOWN:
      break;
    default:
      throw Failure(ORT_NOT_IMPLEMENTED, "a value is neither a tensor, a sequence, a map nor an optional");
  }
  return message;
}

Message unsized_message(const OrtTypeInfo* type) {
  if (kind_of(type) != ONNX_TYPE_TENSOR) return type_message(type);
  Message tensor, message;
  tensor.integer(kElement, element_of(tensor_of(type)));
  message.message(kTensorType, tensor);
  return message;
}

std::vector<int64_t> dims_of(const OrtTypeInfo* type) {
  return list_of(ort().GetDimensionsCount, ort().GetDimensions, tensor_of(type));
}

int64_t elements_of(const OrtTypeInfo* type) {
  if (kind_of(type) != ONNX_TYPE_TENSOR) return 0;
  int64_t count = 1;
  for (const int64_t size : dims_of(type)) {
    if (size < 0) return 0;
    count *= size;
  }
  return count;
}

double least_elements_of(const OrtTypeInfo* type) {
  if (kind_of(type) != ONNX_TYPE_TENSOR) return 0;
  double count = 1;
  for (const int64_t size : dims_of(type)) count *= static_cast<double>(std::abs(size));
  return count;
}

bool can_cross(const OrtTypeInfo* type) {
  if (kind_of(type) != ONNX_TYPE_TENSOR) return false;
  const int element = element_of(tensor_of(type));
  return treadle_element_name(element) && !is_packed(element);
}

}  // namespace treadle::provider
