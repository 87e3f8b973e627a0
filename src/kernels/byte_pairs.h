#pragma once
// One pass over bytes that computes an Add or Mul of two operands and quantises the result. One operand is dequantised
// bytes; the other is dequantised bytes or floats.

#include <cstddef>
#include <cstdint>

namespace treadle::kernels {

// The scale, zero point and type of an operand of bytes.
struct ByteScale {
  float scale = 1;
  int32_t zero = 0;
  bool is_signed = false;
};

// y = quantised(A + B or A * B, clamped to [low, high]) with A = a_scale * (a - a_zero) and B likewise; each step is
// rounded. Scales must be normal numbers whose sums and products do not overflow. The scale of b may be negative, which
// gives A - B.
struct BytePairs {
  bool multiplies = false;
  bool b_is_float = false;  // B = b times its scale, which is 1 or -1
  ByteScale a, b, y;
  float low = -__builtin_inff(), high = __builtin_inff();

  // kNear and kQuick take fewer steps. fit() chooses one of them only if it gives the same byte as kExact for all pairs
  // of bytes.
  enum class Way : uint8_t {
    kExact,
    kNear,   // the quotient is computed by two multiplications
    kQuick,  // the level is computed from a_factor, b_factor and offset alone
  };
  Way way = Way::kExact;
  float a_factor = 0, b_factor = 0, offset = 0;
};

struct BytePairKernels {
  // `step`: 1, or 0 if one element serves the whole row. y must not overlap a or b.
  void (*run)(const BytePairs& pairs, const void* a, size_t a_step, const void* b, size_t b_step, void* y,
              size_t n) = nullptr;
  // Chooses the quickest way that gives the same bytes, by trying all pairs. Takes as long as processing some 200,000
  // pairs.
  void (*fit)(BytePairs& pairs) = nullptr;
  // y[i] = table[x[i]]
  void (*look_up)(const uint8_t* x, const uint8_t* table, uint8_t* y, size_t n) = nullptr;
};

// For preferred_isa().
const BytePairKernels& byte_pair_kernels();

}  // namespace treadle::kernels
