// Descriptions of memory (always the processor's), and the allocator from which clients get memory.
#pragma once

#include <string_view>

#include "api.h"

struct OrtMemoryInfo {
  std::string name;
  OrtAllocatorType allocator = OrtDeviceAllocator;
  int device_id = 0;
  OrtMemType type = OrtMemTypeDefault;
  OrtDeviceMemoryType device_memory = OrtDeviceMemoryType_DEFAULT;
  uint32_t vendor_id = 0;

  bool operator==(const OrtMemoryInfo&) const = default;
};

namespace treadle::dropin {

inline constexpr const char* kCpu = "Cpu";

const OrtMemoryInfo& cpu_memory();
OrtAllocator* cpu_allocator();
// Throws for memory of another device.
void require_cpu(const OrtMemoryInfo* memory);

// Allocates from the client's allocator.
void* allocate(OrtAllocator* allocator, size_t bytes);
char* copy_text(OrtAllocator* allocator, std::string_view text);

}  // namespace treadle::dropin
