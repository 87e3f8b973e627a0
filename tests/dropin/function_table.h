// libonnxruntime.so for the tests here: its table of functions, with errors as exceptions and handles that free
// themselves.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "dropin/abi.h"
#include "treadle/treadle.h"

namespace treadle::table_tests {

constexpr auto kFloat = static_cast<ONNXTensorElementDataType>(1);
constexpr auto kInt64 = static_cast<ONNXTensorElementDataType>(7);
constexpr auto kString = ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
constexpr auto kInt4 = static_cast<ONNXTensorElementDataType>(22);

inline std::string library() {
  if (const char* other = std::getenv("TREADLE_TEST_ONNXRUNTIME")) return other;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() /
         "lib/onnxruntime/libonnxruntime.so";
}

inline const OrtApiBase* base() {
  static const OrtApiBase* const base = [] {
    void* const handle = dlopen(library().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) throw std::runtime_error(dlerror());
    return reinterpret_cast<const OrtApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"))();
  }();
  return base;
}

// The version that a widely used program was built with.
inline const OrtApi& ort() {
  return *base()->GetApi(23);
}

struct Error : std::runtime_error {
  Error(OrtErrorCode code, const std::string& message) : std::runtime_error(message), code(code) {}
  OrtErrorCode code;
};

inline void check(OrtStatus* status) {
  if (!status) return;
  const Error error(ort().GetErrorCode(status), ort().GetErrorMessage(status));
  ort().ReleaseStatus(status);
  throw error;
}

// A handle that its own function of the table frees.
template <class T, void (*OrtApi::*kRelease)(T*)>
struct Release {
  void operator()(T* handle) const { (ort().*kRelease)(handle); }
};
#define TREADLE_HANDLE(name) using name = std::unique_ptr<Ort##name, Release<Ort##name, &OrtApi::Release##name>>
TREADLE_HANDLE(Env);
TREADLE_HANDLE(IoBinding);
TREADLE_HANDLE(MemoryInfo);
TREADLE_HANDLE(ModelMetadata);
TREADLE_HANDLE(RunOptions);
TREADLE_HANDLE(Session);
TREADLE_HANDLE(SessionOptions);
TREADLE_HANDLE(TensorTypeAndShapeInfo);
TREADLE_HANDLE(TypeInfo);
TREADLE_HANDLE(Value);
#undef TREADLE_HANDLE

template <class Owner, class... Parameters, class... Arguments>
Owner make(OrtStatus* (*function)(Parameters...), Arguments... arguments) {
  typename Owner::pointer made = nullptr;
  check(function(arguments..., &made));
  return Owner(made);
}
template <class Result, class... Parameters, class... Arguments>
Result ask(OrtStatus* (*function)(Parameters...), Arguments... arguments) {
  Result result{};
  check(function(arguments..., &result));
  return result;
}

inline std::string bytes_of(const std::string& text) {
  char* bytes = nullptr;
  size_t size = 0;
  treadle_status* const status = treadle_text_parse(TREADLE_MODEL, text.data(), text.size(), &bytes, &size);
  if (status) throw std::runtime_error(treadle_status_text(status));
  std::string model(bytes, size);
  treadle_free(bytes);
  return model;
}

inline std::string model_of(const std::string& graph) {
  return bytes_of("<ir_version: 8, opset_import: [\"\" : 17]>\n" + graph);
}

inline const Env& environment() {
  static const Env environment = make<Env>(ort().CreateEnv, ORT_LOGGING_LEVEL_WARNING, "tests");
  return environment;
}

inline Session open(const std::string& model, const OrtSessionOptions* options = nullptr) {
  const SessionOptions defaults = make<SessionOptions>(ort().CreateSessionOptions);
  return make<Session>(ort().CreateSessionFromArray, environment().get(), model.data(), model.size(),
                       options ? options : defaults.get());
}

inline const OrtMemoryInfo* cpu() {
  static const MemoryInfo memory = make<MemoryInfo>(ort().CreateCpuMemoryInfo, OrtArenaAllocator, OrtMemTypeDefault);
  return memory.get();
}

template <class T>
Value lend(std::vector<T>& elements, const std::vector<int64_t>& dims, ONNXTensorElementDataType type) {
  return make<Value>(ort().CreateTensorWithDataAsOrtValue, cpu(), elements.data(), elements.size() * sizeof(T),
                     dims.data(), dims.size(), type);
}

inline OrtAllocator* allocator() {
  return ask<OrtAllocator*>(ort().GetAllocatorWithDefaultOptions);
}

inline std::string take(char* text) {
  std::string copy = text;
  allocator()->Free(allocator(), text);
  return copy;
}

inline std::vector<Value> run(OrtSession* session, const std::vector<const char*>& names,
                              const std::vector<const OrtValue*>& inputs, const std::vector<const char*>& output_names,
                              const OrtRunOptions* options = nullptr) {
  std::vector<OrtValue*> outputs(output_names.size());
  check(ort().Run(session, options, names.data(), inputs.data(), inputs.size(), output_names.data(), outputs.size(),
                  outputs.data()));
  std::vector<Value> owned;
  for (OrtValue* output : outputs) owned.emplace_back(output);
  return owned;
}

template <class T>
inline std::vector<T> elements(const OrtValue* value) {
  const auto info = make<TensorTypeAndShapeInfo>(ort().GetTensorTypeAndShape, value);
  const T* const data = static_cast<const T*>(ask<void*>(ort().GetTensorMutableData, const_cast<OrtValue*>(value)));
  return {data, data + ask<size_t>(ort().GetTensorShapeElementCount, info.get())};
}

inline std::vector<int64_t> dims(const OrtTensorTypeAndShapeInfo* info) {
  std::vector<int64_t> sizes(ask<size_t>(ort().GetDimensionsCount, info));
  check(ort().GetDimensions(info, sizes.data(), sizes.size()));
  return sizes;
}

inline std::vector<std::string> texts(const OrtValue* value, size_t count) {
  const size_t size = ask<size_t>(ort().GetStringTensorDataLength, value);
  std::string all(size, ' ');
  std::vector<size_t> offsets(count);
  check(ort().GetStringTensorContent(value, all.data(), size, offsets.data(), count));
  std::vector<std::string> made;
  for (size_t i = 0; i < count; ++i) {
    made.push_back(all.substr(offsets[i], (i + 1 < count ? offsets[i + 1] : size) - offsets[i]));
  }
  return made;
}

inline OrtErrorCode code_of(const std::function<void()>& call, std::string* message = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (message) *message = error.what();
    return error.code;
  }
  return ORT_OK;
}

class FunctionTable : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(library())) GTEST_SKIP() << "this configuration has no " << library();
  }
};

}  // namespace treadle::table_tests
