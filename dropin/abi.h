// The parts of onnxruntime's binary C interface that programs use: numbers, handles, structs that clients read or fill,
// and the table of functions (entries.inc). Positions and numbers never change between versions. On Linux paths are
// char.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

enum OrtErrorCode : int {
  ORT_OK = 0,
  ORT_FAIL = 1,
  ORT_INVALID_ARGUMENT = 2,
  ORT_NO_SUCHFILE = 3,
  ORT_RUNTIME_EXCEPTION = 6,
  ORT_INVALID_PROTOBUF = 7,
  ORT_NOT_IMPLEMENTED = 9,
  ORT_INVALID_GRAPH = 10,
};

enum ONNXType : int {
  ONNX_TYPE_UNKNOWN = 0,
  ONNX_TYPE_TENSOR = 1,
  ONNX_TYPE_SEQUENCE = 2,
  ONNX_TYPE_MAP = 3,
  ONNX_TYPE_OPAQUE = 4,
  ONNX_TYPE_SPARSETENSOR = 5,
  ONNX_TYPE_OPTIONAL = 6,
};

enum OrtLoggingLevel : int {
  ORT_LOGGING_LEVEL_VERBOSE = 0,
  ORT_LOGGING_LEVEL_INFO = 1,
  ORT_LOGGING_LEVEL_WARNING = 2,
  ORT_LOGGING_LEVEL_ERROR = 3,
  ORT_LOGGING_LEVEL_FATAL = 4,
};

enum GraphOptimizationLevel : int {
  ORT_DISABLE_ALL = 0,
  ORT_ENABLE_BASIC = 1,
  ORT_ENABLE_EXTENDED = 2,
  ORT_ENABLE_LAYOUT = 3,
  ORT_ENABLE_ALL = 99,
};

enum ExecutionMode : int { ORT_SEQUENTIAL = 0, ORT_PARALLEL = 1 };
enum OrtAllocatorType : int { OrtInvalidAllocator = -1, OrtDeviceAllocator = 0, OrtArenaAllocator = 1 };
enum OrtMemType : int { OrtMemTypeCPUInput = -2, OrtMemTypeCPUOutput = -1, OrtMemTypeDefault = 0 };
enum OrtDeviceMemoryType : int { OrtDeviceMemoryType_DEFAULT = 0, OrtDeviceMemoryType_HOST_ACCESSIBLE = 5 };
enum OrtMemoryInfoDeviceType : int { OrtMemoryInfoDeviceType_CPU = 0 };
enum OrtHardwareDeviceType : int { OrtHardwareDeviceType_CPU = 0 };

// The numbers of ONNX's TensorProto.DataType, as far as both lists go.
enum ONNXTensorElementDataType : int {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED = 0,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING = 8,
};

enum OrtOpAttrType : int {
  ORT_OP_ATTR_INT = 1,
  ORT_OP_ATTR_INTS = 2,
  ORT_OP_ATTR_FLOAT = 3,
  ORT_OP_ATTR_FLOATS = 4,
  ORT_OP_ATTR_STRING = 5,
  ORT_OP_ATTR_STRINGS = 6,
  ORT_OP_ATTR_GRAPH = 7,
  ORT_OP_ATTR_TENSOR = 8,
};

// Enumerations whose numbers are passed on.
enum OrtLanguageProjection : int {};
enum OrtExecutionProviderDevicePolicy : int {};
enum OrtSparseFormat : int {};
enum OrtSparseIndicesFormat : int {};
enum OrtCustomOpInputOutputCharacteristic : int {
  INPUT_OUTPUT_REQUIRED = 0,
  INPUT_OUTPUT_OPTIONAL = 1,
  INPUT_OUTPUT_VARIADIC = 2,
};
enum OrtCompiledModelCompatibility : int {};

// Handles.
struct OrtAllocator;
struct OrtArenaCfg;
struct OrtCustomOp;
struct OrtCustomOpDomain;
struct OrtEnv;
struct OrtEpDevice;
struct OrtHardwareDevice;
struct OrtIoBinding;
struct OrtKeyValuePairs;
struct OrtKernelContext;
struct OrtKernelInfo;
struct OrtLogger;
struct OrtMapTypeInfo;
struct OrtMemoryInfo;
struct OrtModelMetadata;
struct OrtOpAttr;
struct OrtOptionalTypeInfo;
struct OrtPrepackedWeightsContainer;
struct OrtRunOptions;
struct OrtSequenceTypeInfo;
struct OrtSession;
struct OrtSessionOptions;
struct OrtShapeInferContext;
struct OrtStatus;
struct OrtTensorTypeAndShapeInfo;
struct OrtThreadingOptions;
struct OrtTypeInfo;
struct OrtValue;

// Types of functions that treadle refuses.
struct OrtCANNProviderOptions;
struct OrtCUDAProviderOptions;
struct OrtCUDAProviderOptionsV2;
struct OrtCompileApi;
struct OrtDeviceEpIncompatibilityDetails;
struct OrtDnnlProviderOptions;
struct OrtEpApi;
struct OrtEpAssignedNode;
struct OrtEpAssignedSubgraph;
struct OrtExternalInitializerInfo;
struct OrtGraph;
struct OrtInteropApi;
struct OrtLoraAdapter;
struct OrtMIGraphXProviderOptions;
struct OrtModel;
struct OrtModelEditorApi;
struct OrtNode;
struct OrtOp;
struct OrtOpenVINOProviderOptions;
struct OrtROCMProviderOptions;
struct OrtSyncStream;
struct OrtTensorRTProviderOptions;
struct OrtTensorRTProviderOptionsV2;
struct OrtThreadPoolCallbacksConfig;
struct OrtTrainingApi;
struct OrtValueInfo;

using OrtStatusPtr = OrtStatus*;
using OrtExperimentalFnPtr = void (*)();
using OrtLoggingFunction = void (*)(void* param, OrtLoggingLevel severity, const char* category, const char* logid,
                                    const char* code_location, const char* message);
using RunAsyncCallbackFn = void (*)(void* user_data, OrtValue** outputs, size_t num_outputs, OrtStatus* status);
using EpSelectionDelegate = OrtStatus* (*)(const OrtEpDevice** devices, size_t num_devices,
                                           const OrtKeyValuePairs* model_metadata,
                                           const OrtKeyValuePairs* runtime_metadata, const OrtEpDevice** selected,
                                           size_t max_selected, size_t* num_selected, void* state);
using OrtThreadWorkerFn = void (*)(void* parameter);
using OrtCustomThreadHandle = const struct OrtCustomHandleType*;
using OrtCustomCreateThreadFn = OrtCustomThreadHandle (*)(void* options, OrtThreadWorkerFn worker, void* parameter);
using OrtCustomJoinThreadFn = void (*)(OrtCustomThreadHandle thread);

// Clients call its functions themselves. `version`: the interface's version, which tells how many of them there are.
struct OrtAllocator {
  uint32_t version;
  void* (*Alloc)(OrtAllocator* self, size_t size);
  void (*Free)(OrtAllocator* self, void* memory);
  const OrtMemoryInfo* (*Info)(const OrtAllocator* self);
  void* (*Reserve)(OrtAllocator* self, size_t size);                          // since 18
  OrtStatus* (*GetStats)(const OrtAllocator* self, OrtKeyValuePairs** out);   // since 23
  void* (*AllocOnStream)(OrtAllocator* self, size_t size, OrtSyncStream* s);  // since 23
  OrtStatus* (*Shrink)(OrtAllocator* self);                                   // since 25
};

// An operator as a library fills it in. `version` tells how many of the members the library has: those up to
// GetOutputCharacteristic always, each later one from the version in its comment on.
struct OrtApi;
struct OrtCustomOp {
  uint32_t version;
  void* (*CreateKernel)(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo* info);
  const char* (*GetName)(const OrtCustomOp* op);
  const char* (*GetExecutionProviderType)(const OrtCustomOp* op);
  ONNXTensorElementDataType (*GetInputType)(const OrtCustomOp* op, size_t index);
  size_t (*GetInputTypeCount)(const OrtCustomOp* op);
  ONNXTensorElementDataType (*GetOutputType)(const OrtCustomOp* op, size_t index);
  size_t (*GetOutputTypeCount)(const OrtCustomOp* op);
  void (*KernelCompute)(void* kernel, OrtKernelContext* context);
  void (*KernelDestroy)(void* kernel);
  OrtCustomOpInputOutputCharacteristic (*GetInputCharacteristic)(const OrtCustomOp* op, size_t index);
  OrtCustomOpInputOutputCharacteristic (*GetOutputCharacteristic)(const OrtCustomOp* op, size_t index);
  OrtMemType (*GetInputMemoryType)(const OrtCustomOp* op, size_t index);  // 13
  int (*GetVariadicInputMinArity)(const OrtCustomOp* op);                 // 14
  int (*GetVariadicInputHomogeneity)(const OrtCustomOp* op);              // 14
  int (*GetVariadicOutputMinArity)(const OrtCustomOp* op);                // 14
  int (*GetVariadicOutputHomogeneity)(const OrtCustomOp* op);             // 14
  OrtStatus* (*CreateKernelV2)(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo* info,
                               void** kernel);                                             // 16
  OrtStatus* (*KernelComputeV2)(void* kernel, OrtKernelContext* context);                  // 16
  OrtStatus* (*InferOutputShapeFn)(const OrtCustomOp* op, OrtShapeInferContext* context);  // 17
  int (*GetStartVersion)(const OrtCustomOp* op);                                           // 17
  int (*GetEndVersion)(const OrtCustomOp* op);                                             // 17
  size_t (*GetMayInplace)(int** input_index, int** output_index);                          // 18
  void (*ReleaseMayInplace)(int* input_index, int* output_index);                          // 18
  size_t (*GetAliasMap)(int** input_index, int** output_index);                            // 18
  void (*ReleaseAliasMap)(int* input_index, int* output_index);                            // 18
};

struct OrtEnvCreationOptions {
  uint32_t version;
  int32_t logging_severity_level;
  const char* log_id;
  OrtLoggingFunction custom_logging_function;
  void* custom_logging_param;
  const OrtThreadingOptions* threading_options;
  const OrtKeyValuePairs* config_entries;
};

struct OrtApi {
#define X(how, name, result, ...) result (*name)(__VA_ARGS__);
#include "entries.inc"
#undef X
};
static_assert(sizeof(OrtApi) == 429 * sizeof(void*));

struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)();
};

__attribute__((visibility("default"))) const OrtApiBase* OrtGetApiBase();
__attribute__((visibility("default"))) OrtStatus* OrtSessionOptionsAppendExecutionProvider_CPU(
    OrtSessionOptions* options, int use_arena);

}  // extern "C"
