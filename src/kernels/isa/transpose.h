#pragma once
// Transposing matrices of elements of any width, once per instruction set: registers hold squares of elements, and an
// instruction set with three operands does without copies of them.

#include <cstddef>
#include <cstdint>

#include "kernels/isa/each.h"

namespace treadle::kernels {

// in: [columns][rows] with rows dense; out: [rows][columns] with columns dense. Strides in bytes; `width`: of an
// element.
TREADLE_IN_EACH_ISA(void transpose(size_t width, const std::byte* in, int64_t in_stride, std::byte* out,
                                   int64_t out_stride, int64_t rows, int64_t columns);)

}  // namespace treadle::kernels
