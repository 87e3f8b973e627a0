#pragma once
// The instruction sets for which this build has kernels (cmake/Kernels.cmake). Code that declares a function of
// src/kernels/isa in each of them, or picks one, takes the list from here.

#include "base/status.h"
#include "kernels/dispatch.h"

#if defined(TREADLE_HAS_BASELINE_KERNELS)
#define TREADLE_IF_BASELINE(...) __VA_ARGS__
#else
#define TREADLE_IF_BASELINE(...)
#endif
#if defined(TREADLE_HAS_AVX2_KERNELS)
#define TREADLE_IF_AVX2(...) __VA_ARGS__
#else
#define TREADLE_IF_AVX2(...)
#endif
#if defined(TREADLE_HAS_AVX512_KERNELS)
#define TREADLE_IF_AVX512(...) __VA_ARGS__
#else
#define TREADLE_IF_AVX512(...)
#endif

// Declares a function in the namespace of each instruction set.
#define TREADLE_IN_EACH_ISA(...)                       \
  TREADLE_IF_BASELINE(namespace baseline{__VA_ARGS__}) \
  TREADLE_IF_AVX2(namespace avx2{__VA_ARGS__})         \
  TREADLE_IF_AVX512(namespace avx512{__VA_ARGS__})

// The address of `function` in the namespace of `isa`, which must be one of usable_isas().
#define TREADLE_OF_ISA(isa, function)                                          \
  [of = isa] {                                                                 \
    TREADLE_IF_AVX512(if (of == Isa::kAvx512) return &avx512::function;)       \
    TREADLE_IF_AVX2(if (of == Isa::kAvx2) return &avx2::function;)             \
    TREADLE_IF_BASELINE(if (of == Isa::kBaseline) return &baseline::function;) \
    TREADLE_ASSERT(false);                                                     \
    __builtin_unreachable();                                                   \
  }()
