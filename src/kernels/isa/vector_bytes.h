#pragma once
// The size of a vector register of the instruction set for which this file is compiled.

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
