#include "memory.h"

#include <cstdlib>
#include <cstring>

#include "pairs.h"

namespace treadle::dropin {

namespace {

constexpr size_t kAlignment = 64;

void* allocate_aligned(OrtAllocator*, size_t size) {
  if (size > SIZE_MAX - kAlignment) return nullptr;
  return std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
}

// The class of all allocators.
struct CpuAllocator : OrtAllocator {
  CpuAllocator() : OrtAllocator{} {
    version = 25;
    Alloc = Reserve = allocate_aligned;
    Free = [](OrtAllocator*, void* memory) { std::free(memory); };
    Info = [](const OrtAllocator*) { return &cpu_memory(); };
    GetStats = [](const OrtAllocator*, OrtKeyValuePairs** out) -> OrtStatus* {
      if (!out) return make_status(ORT_INVALID_ARGUMENT, "GetStats: argument 2 (OrtKeyValuePairs**) is NULL");
      *out = new OrtKeyValuePairs;
      return nullptr;
    };
    AllocOnStream = [](OrtAllocator* self, size_t size, OrtSyncStream*) { return allocate_aligned(self, size); };
    Shrink = [](OrtAllocator*) -> OrtStatus* { return nullptr; };
  }
};

}  // namespace

const OrtMemoryInfo& cpu_memory() {
  static const OrtMemoryInfo memory{.name = kCpu};
  return memory;
}

OrtAllocator* cpu_allocator() {
  static CpuAllocator allocator;
  return &allocator;
}

void require_cpu(const OrtMemoryInfo* memory) {
  if (memory && memory->name.rfind(kCpu, 0) != 0) {
    refuse_argument("expected memory of the processor (\"" + std::string(kCpu) + "\"), found \"" + memory->name + "\"");
  }
}

void* allocate(OrtAllocator* allocator, size_t bytes) {
  require(allocator, "an allocator is missing");
  void* const memory = needed_member("OrtAllocator::Alloc", allocator->Alloc)(allocator, bytes);
  if (!memory) throw std::bad_alloc();
  return memory;
}

char* copy_text(OrtAllocator* allocator, std::string_view text) {
  char* const copy = static_cast<char*>(allocate(allocator, text.size() + 1));
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  return copy;
}

namespace api {

void CreateMemoryInfo(const char* name, OrtAllocatorType allocator, int id, OrtMemType type, OrtMemoryInfo** out) {
  require(name, "the name of a memory is missing");
  *out = new OrtMemoryInfo{.name = name, .allocator = allocator, .device_id = id, .type = type};
}

void CreateCpuMemoryInfo(OrtAllocatorType allocator, OrtMemType type, OrtMemoryInfo** out) {
  *out = new OrtMemoryInfo{.name = kCpu, .allocator = allocator, .type = type};
}

void CreateMemoryInfo_V2(const char* name, OrtMemoryInfoDeviceType device, uint32_t vendor_id, int32_t device_id,
                         OrtDeviceMemoryType type, size_t, OrtAllocatorType allocator, OrtMemoryInfo** out) {
  require(name, "the name of a memory is missing");
  if (device != OrtMemoryInfoDeviceType_CPU) refuse_argument("there is no device but the processor");
  *out = new OrtMemoryInfo{
      .name = name, .allocator = allocator, .device_id = device_id, .device_memory = type, .vendor_id = vendor_id};
}

void ReleaseMemoryInfo(OrtMemoryInfo* memory) {
  delete memory;
}

void CompareMemoryInfo(const OrtMemoryInfo* a, const OrtMemoryInfo* b, int* out) {
  require(b, "the memory to compare with is missing");
  *out = *a == *b ? 0 : -1;
}

void MemoryInfoGetName(const OrtMemoryInfo* memory, const char** out) {
  *out = memory->name.c_str();
}

void MemoryInfoGetId(const OrtMemoryInfo* memory, int* out) {
  *out = memory->device_id;
}

void MemoryInfoGetMemType(const OrtMemoryInfo* memory, OrtMemType* out) {
  *out = memory->type;
}

void MemoryInfoGetType(const OrtMemoryInfo* memory, OrtAllocatorType* out) {
  *out = memory->allocator;
}

void MemoryInfoGetDeviceType(const OrtMemoryInfo*, OrtMemoryInfoDeviceType* out) {
  *out = OrtMemoryInfoDeviceType_CPU;
}

OrtDeviceMemoryType MemoryInfoGetDeviceMemType(const OrtMemoryInfo* memory) {
  return memory->device_memory;
}

uint32_t MemoryInfoGetVendorId(const OrtMemoryInfo* memory) {
  return memory->vendor_id;
}

void AllocatorAlloc(OrtAllocator* allocator, size_t size, void** out) {
  *out = allocate(allocator, size);
}

void AllocatorFree(OrtAllocator* allocator, void* memory) {
  needed_member("OrtAllocator::Free", allocator->Free)(allocator, memory);
}

void AllocatorGetInfo(const OrtAllocator* allocator, const OrtMemoryInfo** out) {
  *out = needed_member("OrtAllocator::Info", allocator->Info)(allocator);
}

void AllocatorGetStats(const OrtAllocator*, OrtKeyValuePairs** out) {
  *out = new OrtKeyValuePairs;
}

void GetAllocatorWithDefaultOptions(OrtAllocator** out) {
  *out = cpu_allocator();
}

void CreateAllocator(const OrtSession*, const OrtMemoryInfo* memory, OrtAllocator** out) {
  require_cpu(memory);
  *out = new CpuAllocator;
}

// All allocators are CpuAllocators; the default one is never freed.
void ReleaseAllocator(OrtAllocator* allocator) {
  if (allocator != cpu_allocator()) delete static_cast<CpuAllocator*>(allocator);
}

// Sessions of treadle plan their own memory, so a shared arena has no effect.
void CreateAndRegisterAllocator(OrtEnv*, const OrtMemoryInfo* memory, const OrtArenaCfg*) {
  require_cpu(memory);
}

void CreateAndRegisterAllocatorV2(OrtEnv*, const char*, const OrtMemoryInfo* memory, const OrtArenaCfg*,
                                  const char* const*, const char* const*, size_t) {
  require_cpu(memory);
}

void RegisterAllocator(OrtEnv*, OrtAllocator* allocator) {
  require(allocator, "the allocator is missing");
  require_cpu(needed_member("OrtAllocator::Info", allocator->Info)(allocator));
}

void UnregisterAllocator(OrtEnv*, const OrtMemoryInfo*) {}

void CreateSharedAllocator(OrtEnv*, const OrtEpDevice*, OrtDeviceMemoryType, OrtAllocatorType, const OrtKeyValuePairs*,
                           OrtAllocator** out) {
  if (out) *out = cpu_allocator();
}

void GetSharedAllocator(OrtEnv*, const OrtMemoryInfo* memory, OrtAllocator** out) {
  require_cpu(memory);
  *out = cpu_allocator();
}

void ReleaseSharedAllocator(OrtEnv*, const OrtEpDevice*, OrtDeviceMemoryType) {}

}  // namespace api

}  // namespace treadle::dropin

// Settings of a shared arena, which are not used.
struct OrtArenaCfg {};

namespace treadle::dropin::api {

void CreateArenaCfg(size_t, int, int, int, OrtArenaCfg** out) {
  *out = new OrtArenaCfg;
}

void CreateArenaCfgV2(const char* const*, const size_t*, size_t, OrtArenaCfg** out) {
  *out = new OrtArenaCfg;
}

void ReleaseArenaCfg(OrtArenaCfg* configuration) {
  delete configuration;
}

}  // namespace treadle::dropin::api
