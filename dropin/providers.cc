// The only execution provider, and its only device.

#include <cstring>
#include <memory>

#include "memory.h"
#include "pairs.h"

struct OrtHardwareDevice {
  OrtKeyValuePairs metadata;
};

struct OrtEpDevice {
  OrtHardwareDevice hardware;
  OrtKeyValuePairs metadata, options;
};

namespace treadle::dropin {

namespace {

constexpr const char* kProvider = "CPUExecutionProvider";
constexpr const char* kVendor = "treadle";

const OrtEpDevice& processor() {
  static const OrtEpDevice device;
  return device;
}

}  // namespace

namespace api {

void GetAvailableProviders(char*** out, int* count) {
  auto names = std::make_unique<char*[]>(1);
  names[0] = new char[std::strlen(kProvider) + 1];
  std::strcpy(names[0], kProvider);
  *out = names.release();
  *count = 1;
}

void ReleaseAvailableProviders(char** names, int count) {
  for (int i = 0; i < count; ++i) delete[] names[i];
  delete[] names;
}

const char* GetBuildInfoString() {
  static const std::string text = std::string("ORT Build Info: treadle ") + treadle_version();
  return text.c_str();
}

void GetEpDevices(const OrtEnv*, const OrtEpDevice* const** out, size_t* count) {
  static const OrtEpDevice* const devices[] = {&processor()};
  *out = devices;
  *count = 1;
}

void SessionOptionsAppendExecutionProvider_V2(OrtSessionOptions*, OrtEnv*, const OrtEpDevice* const* devices,
                                              size_t count, const char* const*, const char* const*, size_t) {
  for (size_t i = 0; i < count; ++i) require(devices[i] == &processor(), "there is no device but the processor");
}

const char* EpDevice_EpName(const OrtEpDevice*) {
  return kProvider;
}
const char* EpDevice_EpVendor(const OrtEpDevice*) {
  return kVendor;
}
const OrtKeyValuePairs* EpDevice_EpMetadata(const OrtEpDevice* device) {
  return &device->metadata;
}
const OrtKeyValuePairs* EpDevice_EpOptions(const OrtEpDevice* device) {
  return &device->options;
}
const OrtHardwareDevice* EpDevice_Device(const OrtEpDevice* device) {
  return &device->hardware;
}
const OrtMemoryInfo* EpDevice_MemoryInfo(const OrtEpDevice*, OrtDeviceMemoryType) {
  return &cpu_memory();
}

OrtHardwareDeviceType HardwareDevice_Type(const OrtHardwareDevice*) {
  return OrtHardwareDeviceType_CPU;
}
uint32_t HardwareDevice_VendorId(const OrtHardwareDevice*) {
  return 0;
}
const char* HardwareDevice_Vendor(const OrtHardwareDevice*) {
  return "";
}
uint32_t HardwareDevice_DeviceId(const OrtHardwareDevice*) {
  return 0;
}
const OrtKeyValuePairs* HardwareDevice_Metadata(const OrtHardwareDevice* device) {
  return &device->metadata;
}

void GetNumHardwareDevices(const OrtEnv*, size_t* count) {
  *count = 1;
}

void GetHardwareDevices(const OrtEnv*, const OrtHardwareDevice** devices, size_t count) {
  if (count > 0) devices[0] = &processor().hardware;
}

void SessionGetEpDeviceForInputs(const OrtSession*, const OrtEpDevice** devices, size_t count) {
  for (size_t i = 0; i < count; ++i) devices[i] = &processor();
}

void SessionGetEpDeviceForOutputs(const OrtSession*, const OrtEpDevice** devices, size_t count) {
  for (size_t i = 0; i < count; ++i) devices[i] = &processor();
}

void SessionGetMemoryInfoForInputs(const OrtSession*, const OrtMemoryInfo** memory, size_t count) {
  for (size_t i = 0; i < count; ++i) memory[i] = &cpu_memory();
}

void SessionGetMemoryInfoForOutputs(const OrtSession*, const OrtMemoryInfo** memory, size_t count) {
  for (size_t i = 0; i < count; ++i) memory[i] = &cpu_memory();
}

}  // namespace api

}  // namespace treadle::dropin
