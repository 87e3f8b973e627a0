// Types of values and inputs: elements, sizes, contents of sequences, maps and optionals.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "api.h"

// The type and the sizes of a tensor.
struct OrtTensorTypeAndShapeInfo {
  int element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  bool has_shape = true;
  std::vector<int64_t> dims{};         // -1: unknown
  std::vector<std::string> symbols{};  // "" for a size without a name

  int64_t count() const;  // -1: unknown
};

struct OrtSequenceTypeInfo {
  std::shared_ptr<const OrtTypeInfo> element;
};

struct OrtOptionalTypeInfo {
  std::shared_ptr<const OrtTypeInfo> contained;
};

struct OrtMapTypeInfo {
  int key = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::shared_ptr<const OrtTypeInfo> value;
};

struct OrtTypeInfo {
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  OrtTensorTypeAndShapeInfo tensor{};
  OrtSequenceTypeInfo sequence{};
  OrtOptionalTypeInfo optional{};
  OrtMapTypeInfo map{};
};

namespace treadle::dropin {

// Converts kinds of types, and describes a type.
ONNXType kind_of(treadle_kind kind);
OrtTypeInfo describe(const treadle_type* type);
OrtTensorTypeAndShapeInfo describe_tensor(int element, const int64_t* dims, size_t rank);
// Such as "float[2,3]", for messages.
std::string text_of(const OrtTensorTypeAndShapeInfo& info);

}  // namespace treadle::dropin
