#pragma once
// The instruction sets that kernels are compiled for, and those that this machine can run.

#include <cstdint>
#include <span>
#include <string_view>

namespace treadle {

// In ascending order: a machine that runs one runs all before it. Processors other than x86 have kBaseline only.
enum class Isa : uint8_t { kBaseline, kAvx2, kAvx512 };
inline constexpr int kIsaCount = 3;

std::string_view name(Isa isa);  // "baseline", "avx2", "avx512"

// Whether this build has kernels of `isa` (cmake/Kernels.cmake). Published builds have kernels of all.
bool has_kernels(Isa isa);

// The instruction sets that processor, operating system and this build support, in ascending order. kAvx2 means AVX2,
// FMA, F16C, BMI1 and BMI2; kAvx512 means the F, BW, DQ and VL parts as well. At least one: a program whose build has
// none for its machine ends with a message.
std::span<const Isa> usable_isas();
Isa narrowest_isa();  // the first of them
Isa widest_isa();     // the last

// The instruction set that TREADLE_ISA names if the machine can run it, else widest_isa(). Read once.
Isa active_isa();

}  // namespace treadle
