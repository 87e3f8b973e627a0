// Handles of libonnxruntime.so by their types, for tests that call every function of its table.
#pragma once

#include <type_traits>
#include <vector>

#include "tests/dropin/function_table.h"

namespace treadle::table_tests {

// A handle for the first parameter of a function, by its type; null if there is none.
class Handles {
 public:
  // Handles of the operator whose function is running; null elsewhere.
  struct OfOperator {
    OrtKernelInfo* info = nullptr;
    OrtKernelContext* context = nullptr;
    OrtShapeInferContext* inference = nullptr;
  } of_operator;

  OrtAllocator* own_allocator = nullptr;  // instead of the default one

  [[gnu::noinline]] Handles()
      : session_(open(model_of("g (float[N] x) => (float[N] y) { y = Neg(x) }"))),
        options_(make<SessionOptions>(ort().CreateSessionOptions)),
        run_(make<RunOptions>(ort().CreateRunOptions)),
        memory_(make<MemoryInfo>(ort().CreateCpuMemoryInfo, OrtArenaAllocator, OrtMemTypeDefault)),
        binding_(make<IoBinding>(ort().CreateIoBinding, session_.get())),
        value_(lend(numbers_, {2}, kFloat)),
        type_(make<TypeInfo>(ort().GetTypeInfo, value_.get())),
        tensor_(make<TensorTypeAndShapeInfo>(ort().GetTensorTypeAndShape, value_.get())),
        metadata_(make<ModelMetadata>(ort().SessionGetModelMetadata, session_.get())) {
    ort().CreateKeyValuePairs(&pairs_);
    size_t devices = 0;
    check(ort().GetEpDevices(environment().get(), &devices_, &devices));
    check(ort().CreateThreadingOptions(&threading_));
    check(ort().CreateCustomOpDomain("handles", &domain_));
  }
  [[gnu::noinline]] ~Handles() {
    ort().ReleaseKeyValuePairs(pairs_);
    ort().ReleaseThreadingOptions(threading_);
    ort().ReleaseCustomOpDomain(domain_);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  template <class T>
  T first() const {
    if constexpr (std::is_pointer_v<T>) {
      return find<std::remove_cv_t<std::remove_pointer_t<T>>>();
    } else {
      return T{};
    }
  }

 private:
  template <class T>
  T* find() const {
    if constexpr (std::is_same_v<T, OrtSession>) return session_.get();
    if constexpr (std::is_same_v<T, OrtSessionOptions>) return options_.get();
    if constexpr (std::is_same_v<T, OrtRunOptions>) return run_.get();
    if constexpr (std::is_same_v<T, OrtMemoryInfo>) return memory_.get();
    if constexpr (std::is_same_v<T, OrtIoBinding>) return binding_.get();
    if constexpr (std::is_same_v<T, OrtValue>) return value_.get();
    if constexpr (std::is_same_v<T, OrtTypeInfo>) return type_.get();
    if constexpr (std::is_same_v<T, OrtTensorTypeAndShapeInfo>) return tensor_.get();
    if constexpr (std::is_same_v<T, OrtModelMetadata>) return metadata_.get();
    if constexpr (std::is_same_v<T, OrtKeyValuePairs>) return pairs_;
    if constexpr (std::is_same_v<T, OrtAllocator>) return own_allocator ? own_allocator : allocator();
    if constexpr (std::is_same_v<T, OrtEnv>) return environment().get();
    if constexpr (std::is_same_v<T, OrtEpDevice>) return const_cast<OrtEpDevice*>(devices_[0]);
    if constexpr (std::is_same_v<T, OrtThreadingOptions>) return threading_;
    if constexpr (std::is_same_v<T, OrtCustomOpDomain>) return domain_;
    if constexpr (std::is_same_v<T, OrtKernelInfo>) return of_operator.info;
    if constexpr (std::is_same_v<T, OrtKernelContext>) return of_operator.context;
    if constexpr (std::is_same_v<T, OrtShapeInferContext>) return of_operator.inference;
    return nullptr;
  }

  std::vector<float> numbers_ = {1, 2};
  Session session_;
  SessionOptions options_;
  RunOptions run_;
  MemoryInfo memory_;
  IoBinding binding_;
  Value value_;
  TypeInfo type_;
  TensorTypeAndShapeInfo tensor_;
  ModelMetadata metadata_;
  OrtKeyValuePairs* pairs_ = nullptr;
  const OrtEpDevice* const* devices_ = nullptr;
  OrtThreadingOptions* threading_ = nullptr;
  OrtCustomOpDomain* domain_ = nullptr;
};

}  // namespace treadle::table_tests
