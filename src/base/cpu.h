#pragma once
// The instruction sets that kernels are compiled for, and which of them this machine can run.

#include <cstdint>
#include <span>
#include <string_view>

namespace treadle {

// In ascending order; a machine that runs one runs all before it. Other processors than x86 have kBaseline only.
enum class Isa : uint8_t { kBaseline, kAvx2, kAvx512 };
inline constexpr int kIsaCount = 3;

std::string_view name(Isa isa);  // "baseline", "avx2", "avx512"

// Whether this build has kernels of it (cmake/Kernels.cmake). What is published has those of all.
bool has_kernels(Isa isa);

// In ascending order, all that processor and operating system support and that this build has kernels of: kAvx2 means
// AVX2, FMA, F16C, BMI1 and BMI2, kAvx512 means the F, BW, DQ and VL parts on top of that.
// At least one: a program ends with a message where the build has none for its machine.
std::span<const Isa> usable_isas();
Isa narrowest_isa();  // the first of them
Isa widest_isa();     // the last

// widest_isa(), or what the environment variable TREADLE_ISA asks for if the machine can run it. Read once.
Isa active_isa();

}  // namespace treadle
