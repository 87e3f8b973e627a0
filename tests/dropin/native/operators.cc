// A library of operators as made for onnxruntime, by the C interface: one operator for each version of OrtCustomOp that
// added a member. A member that the version lacks is a function that ends the process.

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#ifdef WITH_HEADER_OF_ONNXRUNTIME
#include <onnxruntime_c_api.h>
#else
#include "dropin/abi.h"
#endif

namespace {

constexpr auto kFloat = static_cast<ONNXTensorElementDataType>(1);
constexpr auto kAny = static_cast<ONNXTensorElementDataType>(0);
constexpr size_t kVersions[] = {8, 13, 14, 16, 17, 18, 22};

// The API table of the library that registered the operators, for operators whose functions return no status.
const OrtApi* api = nullptr;

struct Floats {
  std::vector<int64_t> dims;
  float* data;
  size_t count;
};

OrtStatus* read(const OrtValue* value, Floats& out) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  if (OrtStatus* status = api->GetTensorTypeAndShape(value, &info)) return status;
  const std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo*)> owned(
      info, api->ReleaseTensorTypeAndShapeInfo);
  size_t rank = 0;
  if (OrtStatus* status = api->GetDimensionsCount(info, &rank)) return status;
  out.dims.resize(rank);
  if (OrtStatus* status = api->GetDimensions(info, out.dims.data(), rank)) return status;
  if (OrtStatus* status = api->GetTensorShapeElementCount(info, &out.count)) return status;
  return api->GetTensorMutableData(const_cast<OrtValue*>(value), reinterpret_cast<void**>(&out.data));
}

struct Kernel {
  float factor = 2;
  float limit = 1e9F;
};

// y = factor (x + every other input); an input that is left out counts as 0.
OrtStatus* compute(const Kernel& kernel, OrtKernelContext* context) {
  size_t inputs = 0;
  if (OrtStatus* status = api->KernelContext_GetInputCount(context, &inputs)) return status;
  Floats sum{};
  std::vector<float> values;
  for (size_t i = 0; i < inputs; ++i) {
    const OrtValue* value = nullptr;
    Floats x{};
    if (OrtStatus* status = api->KernelContext_GetInput(context, i, &value)) return status;
    if (!value) continue;
    if (OrtStatus* status = read(value, x)) return status;
    if (i == 0) {
      sum.dims = x.dims;
      values.assign(x.count, 0);
    }
    for (size_t k = 0; k < values.size(); ++k) values[k] += x.data[x.count == 1 ? 0 : k];
  }
  OrtValue* result = nullptr;
  if (OrtStatus* status = api->KernelContext_GetOutput(context, 0, sum.dims.data(), sum.dims.size(), &result)) {
    return status;
  }
  void* to = nullptr;
  if (OrtStatus* status = api->GetTensorMutableData(result, &to)) return status;
  for (size_t k = 0; k < values.size(); ++k) {
    if (values[k] > kernel.limit) return api->CreateStatus(ORT_INVALID_ARGUMENT, "a number is beyond the limit");
    static_cast<float*>(to)[k] = kernel.factor * values[k];
  }
  return nullptr;
}

OrtStatus* make(const OrtKernelInfo* info, Kernel& kernel) {
  for (auto [name, to] : {std::pair{"factor", &kernel.factor}, std::pair{"limit", &kernel.limit}}) {
    if (OrtStatus* missing = api->KernelInfoGetAttribute_float(info, name, to)) api->ReleaseStatus(missing);
  }
  return kernel.factor == 0 ? api->CreateStatus(ORT_INVALID_ARGUMENT, "a factor of 0 loses everything") : nullptr;
}

void absent() {
  std::abort();
}

struct Operator : OrtCustomOp {
  explicit Operator(uint32_t since) {
    auto* const members = reinterpret_cast<void (**)()>(&CreateKernel);
    for (size_t i = 0; i < (sizeof(OrtCustomOp) - offsetof(OrtCustomOp, CreateKernel)) / sizeof(void*); ++i) {
      members[i] = absent;
    }
    version = since;
    name = "Add" + std::to_string(since);
    GetName = [](const OrtCustomOp* op) { return static_cast<const Operator*>(op)->name.c_str(); };
    GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
    GetInputTypeCount = [](const OrtCustomOp* op) -> size_t { return op->version < 14 ? 2 : 1; };
    GetInputType = [](const OrtCustomOp*, size_t) { return kFloat; };
    GetOutputTypeCount = [](const OrtCustomOp*) -> size_t { return 1; };
    GetOutputType = [](const OrtCustomOp*, size_t) { return kFloat; };
    GetOutputCharacteristic = [](const OrtCustomOp*, size_t) { return INPUT_OUTPUT_REQUIRED; };
    GetInputCharacteristic = [](const OrtCustomOp* op, size_t i) {
      if (op->version >= 14) return INPUT_OUTPUT_VARIADIC;
      return i == 0 ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
    };
    CreateKernel = [](const OrtCustomOp*, const OrtApi*, const OrtKernelInfo* info) -> void* {
      auto kernel = std::make_unique<Kernel>();
      if (OrtStatus* status = make(info, *kernel)) api->ReleaseStatus(status);
      return kernel.release();
    };
    KernelCompute = [](void* kernel, OrtKernelContext* context) {
      if (OrtStatus* status = compute(*static_cast<Kernel*>(kernel), context)) api->ReleaseStatus(status);
    };
    KernelDestroy = [](void* kernel) { delete static_cast<Kernel*>(kernel); };
    if (since >= 13) GetInputMemoryType = [](const OrtCustomOp*, size_t) { return OrtMemTypeDefault; };
    if (since >= 14) {
      GetVariadicInputMinArity = [](const OrtCustomOp*) { return 1; };
      GetVariadicInputHomogeneity = [](const OrtCustomOp*) { return 1; };
      GetVariadicOutputMinArity = [](const OrtCustomOp*) { return 1; };
      GetVariadicOutputHomogeneity = [](const OrtCustomOp*) { return 1; };
    }
    if (since >= 16) add_statuses();
    if (since >= 17) add_inference();
    if (since >= 18) {
      GetMayInplace = GetAliasMap = [](int**, int**) -> size_t { return 0; };
      ReleaseMayInplace = ReleaseAliasMap = [](int*, int*) {};
    }
  }

  void add_statuses() {
    CreateKernel = nullptr;
    KernelCompute = nullptr;
    CreateKernelV2 = [](const OrtCustomOp*, const OrtApi*, const OrtKernelInfo* info, void** out) -> OrtStatus* {
      auto kernel = std::make_unique<Kernel>();
      if (OrtStatus* status = make(info, *kernel)) return status;
      *out = kernel.release();
      return nullptr;
    };
    KernelComputeV2 = [](void* kernel, OrtKernelContext* context) {
      return compute(*static_cast<Kernel*>(kernel), context);
    };
  }

  void add_inference() {
    GetStartVersion = [](const OrtCustomOp*) { return 1; };
    GetEndVersion = [](const OrtCustomOp*) { return 1000; };
    InferOutputShapeFn = [](const OrtCustomOp*, OrtShapeInferContext* context) -> OrtStatus* {
      OrtTensorTypeAndShapeInfo* x = nullptr;
      if (OrtStatus* status = api->ShapeInferContext_GetInputTypeShape(context, 0, &x)) return status;
      return api->ShapeInferContext_SetOutputTypeShape(context, 0, x);
    };
  }

  std::string name;
};

// Returns the elements of its input, of any type that it accepts.
struct Same : Operator {
  Same() : Operator(17) {
    name = "Same";
    GetInputType = GetOutputType = [](const OrtCustomOp*, size_t) { return kAny; };
    GetInputCharacteristic = [](const OrtCustomOp*, size_t) { return INPUT_OUTPUT_REQUIRED; };
    KernelComputeV2 = [](void*, OrtKernelContext* context) -> OrtStatus* {
      const OrtValue* value = nullptr;
      Floats x{};
      if (OrtStatus* status = api->KernelContext_GetInput(context, 0, &value)) return status;
      if (OrtStatus* status = read(value, x)) return status;
      OrtValue* result = nullptr;
      void* to = nullptr;
      if (OrtStatus* status = api->KernelContext_GetOutput(context, 0, x.dims.data(), x.dims.size(), &result)) {
        return status;
      }
      if (OrtStatus* status = api->GetTensorMutableData(result, &to)) return status;
      size_t bytes = 0;
      if (OrtStatus* status = api->GetTensorSizeInBytes(value, &bytes)) return status;
      std::memcpy(to, x.data, bytes);
      return nullptr;
    };
  }
};

// Makes no output.
struct Forgets : Operator {
  Forgets() : Operator(17) {
    name = "Forgets";
    KernelComputeV2 = [](void*, OrtKernelContext*) -> OrtStatus* { return nullptr; };
  }
};

// Makes its output and writes no elements.
struct Leaves : Operator {
  Leaves() : Operator(17) {
    name = "Leaves";
    KernelComputeV2 = [](void*, OrtKernelContext* context) -> OrtStatus* {
      const int64_t size = 3;
      OrtValue* result = nullptr;
      return api->KernelContext_GetOutput(context, 0, &size, 1, &result);
    };
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(OrtSessionOptions* options,
                                                                               const OrtApiBase* base) {
  api = base->GetApi(23);
  static std::vector<std::unique_ptr<Operator>> operators;
  static OrtCustomOpDomain* domain = nullptr;
  if (!domain) {
    if (OrtStatus* status = api->CreateCustomOpDomain("own", &domain)) return status;
    for (const size_t version : kVersions) {
      operators.push_back(std::make_unique<Operator>(static_cast<uint32_t>(version)));
    }
    operators.push_back(std::make_unique<Same>());
    operators.push_back(std::make_unique<Forgets>());
    operators.push_back(std::make_unique<Leaves>());
    for (const auto& op : operators) {
      if (OrtStatus* status = api->CustomOpDomain_Add(domain, op.get())) return status;
    }
  }
  return api->AddCustomOpDomain(options, domain);
}
