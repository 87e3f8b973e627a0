#include "types.h"

#include <algorithm>
#include <numeric>

int64_t OrtTensorTypeAndShapeInfo::count() const {
  if (std::any_of(dims.begin(), dims.end(), [](int64_t size) { return size < 0; })) return -1;
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

namespace treadle::dropin {

namespace {

std::shared_ptr<const OrtTypeInfo> child_of(const treadle_type* type) {
  const treadle_type* const child = treadle_type_child(type);
  return std::make_shared<const OrtTypeInfo>(child ? describe(child) : OrtTypeInfo{});
}

OrtTensorTypeAndShapeInfo describe_tensor(const treadle_type* type) {
  OrtTensorTypeAndShapeInfo info{.element = treadle_type_element(type)};
  const int64_t rank = treadle_type_rank(type);
  info.has_shape = rank >= 0;
  for (int64_t axis = 0; axis < rank; ++axis) {
    info.dims.push_back(treadle_type_dim(type, axis));
    const std::unique_ptr<char, void (*)(void*)> symbol(treadle_type_symbol(type, axis), treadle_free);
    info.symbols.emplace_back(symbol ? symbol.get() : "");
  }
  return info;
}

OrtTypeInfo* copy_of(const std::shared_ptr<const OrtTypeInfo>& type) {
  return type ? new OrtTypeInfo(*type) : new OrtTypeInfo;
}

}  // namespace

ONNXType kind_of(treadle_kind kind) {
  switch (kind) {
    case TREADLE_NONE:
      return ONNX_TYPE_UNKNOWN;
    case TREADLE_TENSOR:
      return ONNX_TYPE_TENSOR;
    case TREADLE_SEQUENCE:
      return ONNX_TYPE_SEQUENCE;
    case TREADLE_OPTIONAL:
      return ONNX_TYPE_OPTIONAL;
    case TREADLE_MAP:
      return ONNX_TYPE_MAP;
    case TREADLE_SPARSE_TENSOR:
      return ONNX_TYPE_SPARSETENSOR;
  }
  return ONNX_TYPE_UNKNOWN;
}

OrtTypeInfo describe(const treadle_type* type) {
  OrtTypeInfo info;
  info.kind = kind_of(treadle_type_kind(type));
  switch (treadle_type_kind(type)) {
    case TREADLE_TENSOR:
    case TREADLE_SPARSE_TENSOR:
      info.tensor = describe_tensor(type);
      break;
    case TREADLE_SEQUENCE:
      info.sequence.element = child_of(type);
      break;
    case TREADLE_OPTIONAL:
      info.optional.contained = child_of(type);
      break;
    case TREADLE_MAP:
      info.map = {treadle_type_element(type), child_of(type)};
      break;
    case TREADLE_NONE:
      break;
  }
  return info;
}

OrtTensorTypeAndShapeInfo describe_tensor(int element, const int64_t* dims, size_t rank) {
  return {.element = element, .dims = {dims, dims + rank}, .symbols = std::vector<std::string>(rank)};
}

std::string text_of(const OrtTensorTypeAndShapeInfo& info) {
  const char* const name = treadle_element_name(info.element);
  std::string text = std::string(name ? name : "undefined") + "[";
  for (size_t i = 0; i < info.dims.size(); ++i) text += (i ? "," : "") + std::to_string(info.dims[i]);
  return text + "]";
}

namespace api {

void CastTypeInfoToTensorInfo(const OrtTypeInfo* type, const OrtTensorTypeAndShapeInfo** out) {
  *out = type->kind == ONNX_TYPE_TENSOR || type->kind == ONNX_TYPE_SPARSETENSOR ? &type->tensor : nullptr;
}

void CastTypeInfoToMapTypeInfo(const OrtTypeInfo* type, const OrtMapTypeInfo** out) {
  *out = type->kind == ONNX_TYPE_MAP ? &type->map : nullptr;
}

void CastTypeInfoToSequenceTypeInfo(const OrtTypeInfo* type, const OrtSequenceTypeInfo** out) {
  *out = type->kind == ONNX_TYPE_SEQUENCE ? &type->sequence : nullptr;
}

void CastTypeInfoToOptionalTypeInfo(const OrtTypeInfo* type, const OrtOptionalTypeInfo** out) {
  *out = type->kind == ONNX_TYPE_OPTIONAL ? &type->optional : nullptr;
}

void GetOnnxTypeFromTypeInfo(const OrtTypeInfo* type, ONNXType* out) {
  *out = type->kind;
}

// Denotations of types, which treadle does not read: it reads only those of inputs' sizes.
void GetDenotationFromTypeInfo(const OrtTypeInfo*, const char** const denotation, size_t* length) {
  *denotation = "";
  *length = 0;
}

void GetMapKeyType(const OrtMapTypeInfo* map, ONNXTensorElementDataType* out) {
  *out = static_cast<ONNXTensorElementDataType>(map->key);
}

void GetMapValueType(const OrtMapTypeInfo* map, OrtTypeInfo** out) {
  *out = copy_of(map->value);
}

void GetSequenceElementType(const OrtSequenceTypeInfo* sequence, OrtTypeInfo** out) {
  *out = copy_of(sequence->element);
}

void GetOptionalContainedTypeInfo(const OrtOptionalTypeInfo* optional, OrtTypeInfo** out) {
  *out = copy_of(optional->contained);
}

void ReleaseTypeInfo(OrtTypeInfo* type) {
  delete type;
}

// Clients see maps and sequences only as parts of a type, which frees them.
void ReleaseMapTypeInfo(OrtMapTypeInfo*) {}
void ReleaseSequenceTypeInfo(OrtSequenceTypeInfo*) {}

void CreateTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo** out) {
  *out = new OrtTensorTypeAndShapeInfo;
}

void ReleaseTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo* info) {
  delete info;
}

void SetTensorElementType(OrtTensorTypeAndShapeInfo* info, ONNXTensorElementDataType element) {
  info->element = element;
}

// A size that has a name or is unknown is negative: -1, or -2 from onnxruntime's C++ header.
void SetDimensions(OrtTensorTypeAndShapeInfo* info, const int64_t* dims, size_t count) {
  require(info && (dims || count == 0), "a description of a tensor, or its sizes, are missing");
  info->dims.assign(dims, dims + count);
  for (int64_t& size : info->dims) size = std::max(size, int64_t{-1});
  info->symbols.assign(count, "");
  info->has_shape = true;
}

void SetSymbolicDimensions(OrtTensorTypeAndShapeInfo* info, const char** names, size_t count) {
  if (count != info->dims.size()) {
    refuse_argument("expected " + std::to_string(info->dims.size()) + " names of sizes, found " +
                    std::to_string(count));
  }
  for (size_t i = 0; i < count; ++i) info->symbols[i] = names[i] ? names[i] : "";
}

void GetTensorElementType(const OrtTensorTypeAndShapeInfo* info, ONNXTensorElementDataType* out) {
  *out = static_cast<ONNXTensorElementDataType>(info->element);
}

void GetDimensionsCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) {
  *out = info->dims.size();
}

void GetDimensions(const OrtTensorTypeAndShapeInfo* info, int64_t* dims, size_t count) {
  std::copy_n(info->dims.begin(), std::min(count, info->dims.size()), dims);
}

void GetSymbolicDimensions(const OrtTensorTypeAndShapeInfo* info, const char** names, size_t count) {
  for (size_t i = 0; i < std::min(count, info->symbols.size()); ++i) names[i] = info->symbols[i].c_str();
}

void GetTensorShapeElementCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) {
  *out = static_cast<size_t>(info->count());
}

bool TensorTypeAndShape_HasShape(const OrtTensorTypeAndShapeInfo* info) {
  return info->has_shape;
}

}  // namespace api

}  // namespace treadle::dropin
