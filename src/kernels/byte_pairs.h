#pragma once
// An operation of a dequantised operand and another one, or floats, quantised again, as one pass over bytes.

#include <cstddef>
#include <cstdint>

namespace treadle::kernels {

// Bytes of one scale and zero point.
struct ByteScale {
  float scale = 1;
  int32_t zero = 0;
  bool is_signed = false;
};

// y = quantised(kept within [low, high] (A + B or A * B)) with A = a_scale * (a - a_zero) and B likewise, each step
// rounded. Scales are normal numbers whose sums and products do not overflow; b's may be negative: A - B.
struct BytePairs {
  bool multiplies = false;
  bool b_is_float = false;  // B = b times its scale, which is 1 or -1
  ByteScale a, b, y;
  float low = -__builtin_inff(), high = __builtin_inff();

  // Ways that take fewer steps, where they give the same bytes for all pairs of bytes.
  enum class Way : uint8_t {
    kExact,
    kNear,   // the quotient by two multiplications
    kQuick,  // the level by these factors alone
  };
  Way way = Way::kExact;
  float a_factor = 0, b_factor = 0, offset = 0;
};

struct BytePairKernels {
  // `step`: 1, or 0 where one element serves all. The result lies elsewhere.
  void (*run)(const BytePairs& pairs, const void* a, size_t a_step, const void* b, size_t b_step, void* y,
              size_t n) = nullptr;
  // Looks for the quickest way, by trying all pairs; takes as long as some 200,000 pairs.
  void (*fit)(BytePairs& pairs) = nullptr;
  // y[i] = table[x[i]]
  void (*look_up)(const uint8_t* x, const uint8_t* table, uint8_t* y, size_t n) = nullptr;
};

// Of preferred_isa().
const BytePairKernels& byte_pair_kernels();

}  // namespace treadle::kernels
