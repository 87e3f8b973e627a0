#pragma once
// Transposing matrices of elements of any width, compiled once per instruction set: registers hold squares of elements,
// and instructions with three operands save copies of registers.

#include <cstddef>
#include <cstdint>

#include "kernels/isa/each.h"

namespace treadle::kernels {

// `in`: [columns][rows] with contiguous rows. `out`: [rows][columns] with contiguous columns. Strides are in bytes;
// `width`: bytes of an element.
TREADLE_IN_EACH_ISA(void transpose(size_t width, const std::byte* in, int64_t in_stride, std::byte* out,
                                   int64_t out_stride, int64_t rows, int64_t columns);)

}  // namespace treadle::kernels
