#pragma once
// The arithmetic of quantisation on rows of floats and int32 levels. Element i of a result depends only on elements i
// of the inputs.

#include <cstddef>
#include <cstdint>

namespace treadle::kernels {

// The range of the elements and 0.
struct FloatRange {
  float low = 0, high = 0;
};

// `step`: 0 if one scale (zero point) serves the row, 1 if each element has its own. A null zero point is 0. Results
// may overwrite x.
struct QuantizeKernels {
  void (*divide)(const float* x, const float* scale, size_t step, float* out, size_t n) = nullptr;
  void (*multiply)(const float* x, const float* scale, size_t step, float* out, size_t n) = nullptr;
  // out = x rounded to nearest, ties to even, plus zero, clamped to [low, high], which must have at most 22 bits. NaN
  // gives low.
  void (*round)(const float* x, const int32_t* zero, size_t step, float low, float high, int32_t* out,
                size_t n) = nullptr;
  // out = x - zero; wraps.
  void (*centre)(const int32_t* x, const int32_t* zero, size_t step, float* out, size_t n) = nullptr;
  // The steps above in one pass, for bytes (int8 or uint8) with one scale. Results must not overlap x.
  void (*to_bytes)(const float* x, float scale, int32_t zero, bool is_signed, void* out, size_t n) = nullptr;
  void (*from_bytes)(const void* x, float scale, int32_t zero, bool is_signed, float* out, size_t n) = nullptr;
  // NaN if an element is NaN.
  FloatRange (*range)(const float* x, size_t n) = nullptr;
};

// For preferred_isa().
const QuantizeKernels& quantize_kernels();

}  // namespace treadle::kernels
