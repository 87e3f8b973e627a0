#pragma once
// The arithmetic of quantisation on rows of floats and int32 levels. Element i of a result depends on elements i alone.

#include <cstddef>
#include <cstdint>

namespace treadle::kernels {

// Of the elements and 0.
struct FloatRange {
  float low = 0, high = 0;
};

// `step`: 0 where one scale (zero point) serves the row, 1 where each element has its own. A null zero point is 0.
// Results may take the place of x.
struct QuantizeKernels {
  void (*divide)(const float* x, const float* scale, size_t step, float* out, size_t n) = nullptr;
  void (*multiply)(const float* x, const float* scale, size_t step, float* out, size_t n) = nullptr;
  // out = round to nearest, ties to even, of x, plus zero; within [low, high], which lie within 22 bits. NaN gives low.
  void (*round)(const float* x, const int32_t* zero, size_t step, float low, float high, int32_t* out,
                size_t n) = nullptr;
  // out = x - zero, which wraps.
  void (*centre)(const int32_t* x, const int32_t* zero, size_t step, float* out, size_t n) = nullptr;
  // The steps above, one behind the other, for bytes with one scale: int8 or uint8. Results lie elsewhere than x.
  void (*to_bytes)(const float* x, float scale, int32_t zero, bool is_signed, void* out, size_t n) = nullptr;
  void (*from_bytes)(const void* x, float scale, int32_t zero, bool is_signed, float* out, size_t n) = nullptr;
  // NaN where an element is.
  FloatRange (*range)(const float* x, size_t n) = nullptr;
};

// Of preferred_isa().
const QuantizeKernels& quantize_kernels();

}  // namespace treadle::kernels
