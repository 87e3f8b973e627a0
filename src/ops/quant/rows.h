#pragma once
// Quantisation of rows of elements. Rounding is half to even, and integers saturate; a NaN becomes the lowest integer.

#include "kernels/convert.h"
#include "kernels/quantize.h"

namespace treadle::quant {

// The least and the greatest value of an integer type of at most 16 bits.
struct LevelRange {
  int32_t low, high;
};
LevelRange levels_of(ElementType type);

// Scales and zero points along a row: one for the whole row (step 0), or one per element (step 1).
struct RowScale {
  const float* scale;
  const int32_t* zero;  // null: 0
  size_t step;
};

// out = saturate(round(x / scale) + zero).
struct QuantizeRows {
  ElementType to = ElementType::kUint8;
  kernels::TileConverter widen;  // x to float
  kernels::TileConverter round;  // the quotient to the type of the division and back; no steps: float
  kernels::TileConverter unround;
  kernels::TileConverter narrow;  // integers: from int32; floats: from float, saturating if requested
  const kernels::QuantizeKernels* rows = nullptr;
  bool integers = true, bytes = false, rounds = false;
  float low = 0, high = 0;
  size_t x_width = 4, out_width = 1;

  QuantizeRows() = default;
  QuantizeRows(ElementType x, ElementType to, ElementType precision, bool saturate);
  void operator()(const void* x, const RowScale& scale, void* out, size_t n) const;
};

// out = (x - zero) * scale.
struct DequantizeRows {
  kernels::TileConverter widen;   // x to int32, or to float
  kernels::TileConverter narrow;  // from float
  const kernels::QuantizeKernels* rows = nullptr;
  bool integers = true, bytes = false, is_signed = false;
  size_t x_width = 1, out_width = 4;

  DequantizeRows() = default;
  DequantizeRows(ElementType x, ElementType to);
  void operator()(const void* x, const RowScale& scale, void* out, size_t n) const;
};

}  // namespace treadle::quant
