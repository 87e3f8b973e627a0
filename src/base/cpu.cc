#include "base/cpu.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/knobs.h"

namespace treadle {

std::string_view name(Isa isa) {
  switch (isa) {
    case Isa::kBaseline:
      return "baseline";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

bool has_kernels(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
#ifdef TREADLE_HAS_AVX512_KERNELS
      return true;
#else
      return false;
#endif
    case Isa::kAvx2:
#ifdef TREADLE_HAS_AVX2_KERNELS
      return true;
#else
      return false;
#endif
    case Isa::kBaseline:
#ifdef TREADLE_HAS_BASELINE_KERNELS
      return true;
#else
      return false;
#endif
  }
  return false;
}

namespace {

// By instruction set: whether processor and operating system support it.
std::array<bool, kIsaCount> supported() {
  std::array<bool, kIsaCount> found = {true};
#if defined(TREADLE_HAS_AVX2_KERNELS) || defined(TREADLE_HAS_AVX512_KERNELS)
  __builtin_cpu_init();  // also checks that the operating system saves the wide registers
  found[1] = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
             __builtin_cpu_supports("bmi2");  // every processor with AVX2 has F16C
  found[2] = found[1] && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
  return found;
}

std::vector<Isa> detect() {
  const auto found = supported();
  std::vector<Isa> usable;
  for (int i = 0; i < kIsaCount; ++i) {
    const auto isa = static_cast<Isa>(i);
    if (found[static_cast<size_t>(i)] && has_kernels(isa)) usable.push_back(isa);
  }
  if (usable.empty()) {
    std::fputs("treadle: this build has no kernels for the processor at hand (TREADLE_KERNELS chose them)\n", stderr);
    std::abort();
  }
  return usable;
}

Isa choose() {
  const char* wanted = environment("TREADLE_ISA");
  for (const Isa isa : usable_isas()) {
    if (wanted != nullptr && name(isa) == wanted) return isa;
  }
  return widest_isa();
}

}  // namespace

std::span<const Isa> usable_isas() {
  static const std::vector<Isa> isas = detect();
  return isas;
}

Isa narrowest_isa() {
  return usable_isas().front();
}

Isa widest_isa() {
  return usable_isas().back();
}

Isa active_isa() {
  static const Isa isa = choose();
  return isa;
}

}  // namespace treadle
