#include "tensors.h"

#include <cstring>
#include <numeric>

namespace treadle::provider {

namespace {

size_t count_of(const std::vector<int64_t>& dims) {
  return static_cast<size_t>(std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()));
}

Handle borrow(int element, const int64_t* dims, size_t rank, void* data, bool writable) {
  size_t bytes = treadle_element_width(element);
  for (size_t i = 0; i < rank; ++i) bytes *= static_cast<size_t>(dims[i]);
  treadle_value* made = nullptr;
  check(treadle_tensor_borrow(element, dims, rank, data, bytes, writable, nullptr, nullptr, &made));
  return {made, treadle_value_free};
}

void* data_of(const OrtValue* tensor) {
  void* data = nullptr;
  check(ort().GetTensorMutableData(const_cast<OrtValue*>(tensor), &data));
  return data;
}

Handle lend_texts(const OrtValue* tensor, const std::vector<int64_t>& dims) {
  const std::vector<std::string> texts = texts_of(tensor, count_of(dims));
  std::vector<treadle_text> views;
  for (const std::string& text : texts) views.push_back({text.data(), text.size()});
  treadle_value* made = nullptr;
  check(treadle_tensor_from_texts(dims.data(), dims.size(), views.data(), views.size(), &made));
  return {made, treadle_value_free};
}

}  // namespace

Sizes sizes_of(const OrtValue* tensor) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  check(ort().GetTensorTypeAndShape(tensor, &info));
  const std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo*)> owned(
      info, ort().ReleaseTensorTypeAndShapeInfo);
  ONNXTensorElementDataType element{};
  check(ort().GetTensorElementType(info, &element));
  return {.element = element, .dims = list_of(ort().GetDimensionsCount, ort().GetDimensions, owned.get())};
}

std::vector<std::string> texts_of(const OrtValue* tensor, size_t count) {
  std::vector<std::string> texts(count);
  for (size_t i = 0; i < count; ++i) {
    size_t length = 0;
    check(ort().GetStringTensorElementLength(tensor, i, &length));
    texts[i].resize(length);
    check(ort().GetStringTensorElement(tensor, length, i, texts[i].data()));
  }
  return texts;
}

bool is_packed(int element) {
  const char* name = treadle_element_name(element);
  return name && (std::strstr(name, "int4") || std::strstr(name, "int2") || std::strstr(name, "float4"));
}

Handle lend(const OrtValue* tensor) {
  if (host().lends_sizes()) {
    ONNXTensorElementDataType element{};
    const int64_t* dims = nullptr;
    size_t rank = 0;
    check(ort().GetTensorElementTypeAndShapeDataReference(tensor, &element, &dims, &rank));
    if (element != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return borrow(element, dims, rank, data_of(tensor), false);
  }
  const Sizes sizes = sizes_of(tensor);
  if (sizes.element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return lend_texts(tensor, sizes.dims);
  return borrow(sizes.element, sizes.dims.data(), sizes.dims.size(), data_of(tensor), false);
}

Handle lend_writable(OrtValue* tensor, int element, std::span<const int64_t> dims) {
  return borrow(element, dims.data(), dims.size(), data_of(tensor), true);
}

void copy_to(OrtValue* out, const treadle_value* tensor) {
  if (treadle_tensor_element(tensor) != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    void* memory = data_of(out);
    const void* elements = treadle_tensor_data(tensor);
    if (const size_t bytes = treadle_tensor_bytes(tensor); bytes && memory != elements) {
      std::memcpy(memory, elements, bytes);
    }
    return;
  }
  for (int64_t i = 0; i < treadle_tensor_count(tensor); ++i) {
    const treadle_text text = treadle_tensor_text(tensor, i);
    char* memory = nullptr;
    check(ort().GetResizedStringTensorElementBuffer(out, static_cast<size_t>(i), text.size, &memory));
    std::memcpy(memory, text.data, text.size);
  }
}

}  // namespace treadle::provider
