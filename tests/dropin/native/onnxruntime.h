/* What programs in C, C++ and Go see of onnxruntime here: its table of functions, by the list of its entries. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NUMBER(name) typedef int name;
NUMBER(ExecutionMode)
NUMBER(GraphOptimizationLevel)
NUMBER(ONNXTensorElementDataType)
NUMBER(ONNXType)
NUMBER(OrtAllocatorType)
NUMBER(OrtCompiledModelCompatibility)
NUMBER(OrtDeviceMemoryType)
NUMBER(OrtErrorCode)
NUMBER(OrtExecutionProviderDevicePolicy)
NUMBER(OrtHardwareDeviceType)
NUMBER(OrtLanguageProjection)
NUMBER(OrtLoggingLevel)
NUMBER(OrtMemType)
NUMBER(OrtMemoryInfoDeviceType)
NUMBER(OrtOpAttrType)
NUMBER(OrtSparseFormat)
NUMBER(OrtSparseIndicesFormat)
#undef NUMBER

#define HANDLE(name) typedef struct name name;
HANDLE(OrtArenaCfg)
HANDLE(OrtCANNProviderOptions)
HANDLE(OrtCUDAProviderOptions)
HANDLE(OrtCUDAProviderOptionsV2)
HANDLE(OrtCompileApi)
HANDLE(OrtCustomOp)
HANDLE(OrtCustomOpDomain)
HANDLE(OrtDeviceEpIncompatibilityDetails)
HANDLE(OrtDnnlProviderOptions)
HANDLE(OrtEnv)
HANDLE(OrtEnvCreationOptions)
HANDLE(OrtEpApi)
HANDLE(OrtEpAssignedNode)
HANDLE(OrtEpAssignedSubgraph)
HANDLE(OrtEpDevice)
HANDLE(OrtExternalInitializerInfo)
HANDLE(OrtGraph)
HANDLE(OrtHardwareDevice)
HANDLE(OrtInteropApi)
HANDLE(OrtIoBinding)
HANDLE(OrtKernelContext)
HANDLE(OrtKernelInfo)
HANDLE(OrtKeyValuePairs)
HANDLE(OrtLogger)
HANDLE(OrtLoraAdapter)
HANDLE(OrtMIGraphXProviderOptions)
HANDLE(OrtMapTypeInfo)
HANDLE(OrtMemoryInfo)
HANDLE(OrtModel)
HANDLE(OrtModelEditorApi)
HANDLE(OrtModelMetadata)
HANDLE(OrtNode)
HANDLE(OrtOp)
HANDLE(OrtOpAttr)
HANDLE(OrtOpenVINOProviderOptions)
HANDLE(OrtOptionalTypeInfo)
HANDLE(OrtPrepackedWeightsContainer)
HANDLE(OrtROCMProviderOptions)
HANDLE(OrtRunOptions)
HANDLE(OrtSequenceTypeInfo)
HANDLE(OrtSession)
HANDLE(OrtSessionOptions)
HANDLE(OrtShapeInferContext)
HANDLE(OrtStatus)
HANDLE(OrtSyncStream)
HANDLE(OrtTensorRTProviderOptions)
HANDLE(OrtTensorRTProviderOptionsV2)
HANDLE(OrtTensorTypeAndShapeInfo)
HANDLE(OrtThreadPoolCallbacksConfig)
HANDLE(OrtThreadingOptions)
HANDLE(OrtTrainingApi)
HANDLE(OrtTypeInfo)
HANDLE(OrtValue)
HANDLE(OrtValueInfo)
#undef HANDLE

typedef struct OrtAllocator OrtAllocator;
struct OrtAllocator {
  uint32_t version;
  void* (*Alloc)(OrtAllocator* self, size_t size);
  void (*Free)(OrtAllocator* self, void* memory);
  const OrtMemoryInfo* (*Info)(const OrtAllocator* self);
};

/* Functions that these programs do not give. */
typedef void (*OrtExperimentalFnPtr)(void);
typedef void (*OrtLoggingFunction)(void);
typedef void (*RunAsyncCallbackFn)(void);
typedef void (*EpSelectionDelegate)(void);
typedef void (*OrtCustomCreateThreadFn)(void);
typedef void (*OrtCustomJoinThreadFn)(void);

typedef struct OrtApi {
#define X(how, name, result, ...) result (*name)(__VA_ARGS__);
#include "dropin/entries.inc"
#undef X
} OrtApi;

typedef struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)(void);
} OrtApiBase;

const OrtApiBase* OrtGetApiBase(void);

enum { FLOAT = 1, INT64 = 7, STRING = 8 };

#ifdef __cplusplus
}
#endif
