#pragma once
// Hand-written loops that bench/ measures the engine against. bench/yardsticks.py compiles all files of this folder
// into one shared object (clang -O3 for the host, no contraction) and calls the functions with the inputs of the
// model of the same name: sizes first, then inputs and weights, then room for the outputs in the model's order.
// Matrices are dense, row by row.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#define YARDSTICK extern "C" __attribute__((visibility("default")))

namespace yard {

// e^x to about 1e-7: range reduction by ln 2 in two pieces, then a polynomial. Without branches, so that it vectorises.
inline float exp_of(float x) {
  x = x < -87.3f ? -87.3f : (x > 88.0f ? 88.0f : x);
  const float n = std::nearbyint(x * 1.44269504f);
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  return p * std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
}

inline float sigmoid(float x) {
  return 1.0f / (1.0f + exp_of(-x));
}

inline float tanh_of(float x) {
  return 1.0f - 2.0f / (1.0f + exp_of(2.0f * x));
}

// y[j] += x[k] * w[k, j] for `kColumns` columns from `at` on, whose sums stay in registers.
template <int64_t kColumns>
void add_columns(const float* x, const float* __restrict w, int64_t depth, int64_t width, int64_t at,
                 float* __restrict y) {
  float sums[kColumns];
  std::memcpy(sums, y + at, sizeof(sums));
  for (int64_t k = 0; k < depth; ++k) {
    const float* row = w + k * width + at;
    for (int64_t j = 0; j < kColumns; ++j) sums[j] += x[k] * row[j];
  }
  std::memcpy(y + at, sums, sizeof(sums));
}

// y[n] += x[k] * w[k, n]
inline void add_product(const float* x, const float* __restrict w, int64_t depth, int64_t width, float* __restrict y) {
  int64_t at = 0;
  for (; at + 256 <= width; at += 256) add_columns<256>(x, w, depth, width, at, y);
  for (; at + 64 <= width; at += 64) add_columns<64>(x, w, depth, width, at, y);
  for (; at + 8 <= width; at += 8) add_columns<8>(x, w, depth, width, at, y);
  for (; at < width; ++at) add_columns<1>(x, w, depth, width, at, y);
}

// y[m, n] = x[m, k] * w[k, n], by blocks of 8 rows and 32 columns; the columns of a block stay in first-level cache.
inline void product(const float* x, const float* __restrict w, int64_t rows, int64_t depth, int64_t width,
                    float* __restrict y) {
  constexpr int64_t kColumns = 32, kRows = 8;
  const int64_t whole_rows = width % kColumns == 0 ? rows / kRows * kRows : 0;
  for (int64_t at = 0; at < width && whole_rows > 0; at += kColumns) {
    for (int64_t i = 0; i < whole_rows; i += kRows) {
      float sums[kRows][kColumns] = {};
      for (int64_t k = 0; k < depth; ++k) {
        const float* row = w + k * width + at;
        for (int64_t r = 0; r < kRows; ++r) {
          const float factor = x[(i + r) * depth + k];
          for (int64_t j = 0; j < kColumns; ++j) sums[r][j] += factor * row[j];
        }
      }
      for (int64_t r = 0; r < kRows; ++r) std::memcpy(y + (i + r) * width + at, sums[r], sizeof(sums[r]));
    }
  }
  for (int64_t i = whole_rows; i < rows; ++i) {
    std::memset(y + i * width, 0, static_cast<size_t>(width) * sizeof(float));
    add_product(x + i * depth, w, depth, width, y + i * width);
  }
}

}  // namespace yard
