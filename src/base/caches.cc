#include "base/caches.h"

#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace treadle {

namespace {

#if defined(__x86_64__) || defined(__i386__)

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

// The CPUID leaf that describes each cache: Intel's, or AMD's, whose leaf 4 is empty.
uint32_t leaf_of_caches() {
  constexpr uint32_t kIntel = 4, kAmd = 0x8000'001D;
  Registers r;
  if (__get_cpuid_count(kIntel, 0, &r.a, &r.b, &r.c, &r.d) && (r.a & 31) != 0) return kIntel;
  return kAmd;
}

Caches read() {
  Caches found;
  const uint32_t leaf = leaf_of_caches();
  for (uint32_t index = 0; index < 8; ++index) {
    Registers r;
    if (!__get_cpuid_count(leaf, index, &r.a, &r.b, &r.c, &r.d)) break;
    constexpr uint32_t kNone = 0, kInstructions = 2;
    const uint32_t kind = r.a & 31, level = r.a >> 5 & 7;
    if (kind == kNone) break;
    if (kind == kInstructions) continue;
    const size_t line = (r.b & 0xFFF) + 1, partitions = (r.b >> 12 & 0x3FF) + 1, ways = (r.b >> 22) + 1;
    const size_t bytes = line * partitions * ways * (size_t{r.c} + 1);
    if (level == 1) found.first = bytes;
    if (level == 2) found.second = bytes;
    if (level == 3) found.third = bytes;
  }
  return found;
}

#else

Caches read() {
  return {};
}

#endif

}  // namespace

const Caches& caches() {
  static const Caches found = read();
  return found;
}

}  // namespace treadle
