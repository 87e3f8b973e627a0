#pragma once
// Transposing matrices of elements of any width, once per instruction set: registers hold squares of elements, and an
// instruction set with three operands does without copies of them.

#include <cstddef>
#include <cstdint>

// in: [columns][rows] with rows dense; out: [rows][columns] with columns dense. Strides in bytes; `width`: of an
// element.
#define TREADLE_DECLARE_TRANSPOSE(isa)                                                                     \
  namespace treadle::kernels::isa {                                                                        \
  void transpose(size_t width, const std::byte* in, int64_t in_stride, std::byte* out, int64_t out_stride, \
                 int64_t rows, int64_t columns);                                                           \
  }

TREADLE_DECLARE_TRANSPOSE(baseline)
#if defined(TREADLE_HAS_X86_KERNELS)
TREADLE_DECLARE_TRANSPOSE(avx2)
TREADLE_DECLARE_TRANSPOSE(avx512)
#endif
