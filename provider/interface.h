// The functions of a library of execution providers that onnxruntime calls, and the few that the library calls back.
// Programs never use this part of onnxruntime's binary interface; the rest is in dropin/abi.h.
#pragma once

#include "dropin/abi.h"

extern "C" {

struct OrtEp;
struct OrtEpFactory;
struct OrtEpGraphSupportInfo;
struct OrtNodeComputeContext;

struct OrtNodeFusionOptions {
  uint32_t ort_version_supported;
  bool drop_constant_initializers;
};

struct OrtNodeComputeInfo {
  uint32_t ort_version_supported;
  OrtStatus* (*CreateState)(OrtNodeComputeInfo* self, OrtNodeComputeContext* context, void** state);
  OrtStatus* (*Compute)(OrtNodeComputeInfo* self, void* state, OrtKernelContext* context);
  void (*ReleaseState)(OrtNodeComputeInfo* self, void* state);
};

// The first functions of the table; onnxruntime's table has more.
struct OrtEpApi {
  OrtStatus* (*CreateEpDevice)(OrtEpFactory* factory, const OrtHardwareDevice* device, const OrtKeyValuePairs* metadata,
                               const OrtKeyValuePairs* options, OrtEpDevice** out);
  void (*ReleaseEpDevice)(OrtEpDevice* device);
  OrtStatus* (*EpGraphSupportInfo_AddNodesToFuse)(OrtEpGraphSupportInfo* info, const OrtNode* const* nodes,
                                                  size_t count, const OrtNodeFusionOptions* options);
};

// onnxruntime reads the members that version `ort_version_supported` has. For a NULL member it uses its default.
struct OrtEp {
  uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEp* self);
  OrtStatus* (*GetCapability)(OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* info);
  OrtStatus* (*Compile)(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                        OrtNodeComputeInfo** out, OrtNode** context_nodes);
  void (*ReleaseNodeComputeInfos)(OrtEp* self, OrtNodeComputeInfo** infos, size_t count);
  void (*others[21])();
};

struct OrtDataTransferImpl;

struct OrtEpFactory {
  uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEpFactory* self);
  const char* (*GetVendor)(const OrtEpFactory* self);
  OrtStatus* (*GetSupportedDevices)(OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count,
                                    OrtEpDevice** out, size_t room, size_t* out_count);
  OrtStatus* (*CreateEp)(OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                         const OrtKeyValuePairs* const* metadata, size_t count, const OrtSessionOptions* options,
                         const OrtLogger* logger, OrtEp** out);
  void (*ReleaseEp)(OrtEpFactory* self, OrtEp* ep);
  uint32_t (*GetVendorId)(const OrtEpFactory* self);
  const char* (*GetVersion)(const OrtEpFactory* self);  // must be a semantic version
  void (*ValidateCompiledModelCompatibilityInfo)();
  OrtStatus* (*CreateAllocator)(OrtEpFactory* self, const OrtMemoryInfo* info, const OrtKeyValuePairs* options,
                                OrtAllocator** out);
  void (*ReleaseAllocator)(OrtEpFactory* self, OrtAllocator* allocator);
  OrtStatus* (*CreateDataTransfer)(OrtEpFactory* self, OrtDataTransferImpl** out);
  bool (*IsStreamAware)(const OrtEpFactory* self);
  void (*others[8])();
};

__attribute__((visibility("default"))) OrtStatus* CreateEpFactories(const char* registered_name, const OrtApiBase* base,
                                                                    const OrtLogger* logger, OrtEpFactory** factories,
                                                                    size_t room, size_t* count);
__attribute__((visibility("default"))) OrtStatus* ReleaseEpFactory(OrtEpFactory* factory);

}  // extern "C"
