#include "base/cpu.h"

#include <cstdlib>

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

namespace {

Isa detect() {
#ifdef TREADLE_HAS_X86_KERNELS
  __builtin_cpu_init();  // asks the operating system about the wide registers, too
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx2) return avx512 ? Isa::kAvx512 : Isa::kAvx2;  // every processor with AVX2 has F16C
#endif
  return Isa::kBaseline;
}

Isa choose() {
  const Isa widest = widest_isa();
  const char* wanted = std::getenv("TREADLE_ISA");
  if (wanted == nullptr) return widest;
  for (int i = 0; i <= static_cast<int>(widest); ++i) {
    if (name(static_cast<Isa>(i)) == wanted) return static_cast<Isa>(i);
  }
  return widest;
}

}  // namespace

Isa widest_isa() {
  static const Isa isa = detect();
  return isa;
}

Isa active_isa() {
  static const Isa isa = choose();
  return isa;
}

}  // namespace treadle
