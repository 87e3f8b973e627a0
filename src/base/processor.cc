#include "base/processor.h"

#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace treadle {

namespace {

#if defined(__x86_64__) || defined(__i386__)

void append(std::string& id, uint32_t number) {
  id.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Leaves out bits that may differ between two calls on one machine: EBX has the number of the current core in leaf 1,
// and a varying size in leaf 13.
void append_leaf(std::string& id, uint32_t leaf, uint32_t subleaf) {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(leaf, subleaf, &a, &b, &c, &d)) return append(id, 0);
  append(id, a);
  if (leaf != 1 && leaf != 13) append(id, b);
  append(id, c);
  append(id, d);
}

// The set of registers that the operating system saves.
uint64_t saved_registers() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  constexpr uint32_t kOsSaves = 1u << 27;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & kOsSaves)) return 0;
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

std::string identify() {
  std::string id = "x86";
  for (const uint32_t leaf : {0u, 1u, 0x80000001u}) append_leaf(id, leaf, 0);
  for (const uint32_t subleaf : {0u, 1u, 2u}) append_leaf(id, 7, subleaf);
  append_leaf(id, 13, 1);
  const uint64_t saved = saved_registers();
  id.append(reinterpret_cast<const char*>(&saved), sizeof saved);
  return id;
}

#else

std::string identify() {
  return "other";
}

#endif

}  // namespace

const std::string& processor_id() {
  static const std::string id = identify();
  return id;
}

}  // namespace treadle
