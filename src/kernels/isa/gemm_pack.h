#pragma once
// Copies parts of a strided matrix into the orders that tiles read.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/isa/lanes.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template <class T>
inline constexpr int kPanelWidth = 2 * Lanes<T>::kCount;

// 16 bytes from each of 16 / sizeof(T) rows, transposed.
template <class T>
void transpose_block(const T* from, int64_t from_row, T* to, int64_t to_row) {
  constexpr int kSize = 16 / int{sizeof(T)};
  typedef T V __attribute__((vector_size(16)));
  V in[kSize], out[kSize];
  for (int i = 0; i < kSize; ++i) std::memcpy(&in[i], from + i * from_row, 16);
  if constexpr (kSize == 4) {
    const V low01 = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5);
    const V high01 = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
    const V low23 = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
    const V high23 = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
    out[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
    out[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
    out[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
    out[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
  } else {
    out[0] = __builtin_shufflevector(in[0], in[1], 0, 2);
    out[1] = __builtin_shufflevector(in[0], in[1], 1, 3);
  }
  for (int i = 0; i < kSize; ++i) std::memcpy(to + i * to_row, &out[i], 16);
}

#if defined(__AVX2__)
// 4 floats from each of 8 rows, transposed.
inline void transpose_stripe(const float* from, int64_t from_row, __m256 (&to)[4]) {
  const auto pair = [&](int i) {  // of rows i and i + 4
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + i * from_row)),
                                _mm_loadu_ps(from + (i + 4) * from_row), 1);
  };
  const __m256 row0 = pair(0), row1 = pair(1), row2 = pair(2), row3 = pair(3);
  const __m256 low01 = _mm256_unpacklo_ps(row0, row1), high01 = _mm256_unpackhi_ps(row0, row1);
  const __m256 low23 = _mm256_unpacklo_ps(row2, row3), high23 = _mm256_unpackhi_ps(row2, row3);
  to[0] = _mm256_shuffle_ps(low01, low23, 0x44);
  to[1] = _mm256_shuffle_ps(low01, low23, 0xEE);
  to[2] = _mm256_shuffle_ps(high01, high23, 0x44);
  to[3] = _mm256_shuffle_ps(high01, high23, 0xEE);
}
#endif

#if defined(__AVX512F__)
// 16 floats from each of 16 rows, transposed.
inline void transpose_square(const float* from, int64_t from_row, float* to, int64_t to_row) {
  __m512 a[16], b[16];
  for (int i = 0; i < 16; ++i) a[i] = _mm512_loadu_ps(from + i * from_row);
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
  }
  const auto pairs = [](__m512 low, __m512 high, bool upper) {
    const __m512d x = _mm512_castps_pd(low), y = _mm512_castps_pd(high);
    return _mm512_castpd_ps(upper ? _mm512_unpackhi_pd(x, y) : _mm512_unpacklo_pd(x, y));
  };
  for (int i = 0; i < 16; i += 4) {
    a[i] = pairs(b[i], b[i + 2], false);
    a[i + 1] = pairs(b[i], b[i + 2], true);
    a[i + 2] = pairs(b[i + 1], b[i + 3], false);
    a[i + 3] = pairs(b[i + 1], b[i + 3], true);
  }
  // Quarter q of a[4 * i + c]: column 4 * q + c of rows 4 * i to 4 * i + 3.
  for (int c = 0; c < 4; ++c) {
    const __m512 low01 = _mm512_shuffle_f32x4(a[c], a[4 + c], 0x88),
                 high01 = _mm512_shuffle_f32x4(a[c], a[4 + c], 0xDD);
    const __m512 low23 = _mm512_shuffle_f32x4(a[8 + c], a[12 + c], 0x88),
                 high23 = _mm512_shuffle_f32x4(a[8 + c], a[12 + c], 0xDD);
    _mm512_storeu_ps(to + c * to_row, _mm512_shuffle_f32x4(low01, low23, 0x88));
    _mm512_storeu_ps(to + (4 + c) * to_row, _mm512_shuffle_f32x4(high01, high23, 0x88));
    _mm512_storeu_ps(to + (8 + c) * to_row, _mm512_shuffle_f32x4(low01, low23, 0xDD));
    _mm512_storeu_ps(to + (12 + c) * to_row, _mm512_shuffle_f32x4(high01, high23, 0xDD));
  }
}
#elif defined(__AVX2__)
// 8 floats from each of 8 rows, transposed.
inline void transpose_square(const float* from, int64_t from_row, float* to, int64_t to_row) {
  for (int p = 0; p < 8; p += 4) {
    __m256 columns[4];
    transpose_stripe(from + p, from_row, columns);
    for (int i = 0; i < 4; ++i) _mm256_storeu_ps(to + (p + i) * to_row, columns[i]);
  }
}
#endif

// to[p * width + j] = from[p + j * from_j] for p < steps, j < count.
template <class T>
void transpose_panel(const T* from, int64_t from_j, int64_t steps, int64_t count, int64_t width, T* to) {
  constexpr int64_t kBlock = 16 / sizeof(T);
  int64_t squares = 0;  // columns of `to` whose first `square_steps` rows are done
  int64_t square_steps = 0;
#if defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>) {
    constexpr int64_t kSide = Lanes<float>::kCount;
    squares = count - count % kSide;
    square_steps = steps - steps % kSide;
    for (int64_t j = 0; j < squares; j += kSide) {
      for (int64_t p = 0; p < square_steps; p += kSide) {
        transpose_square(from + p + j * from_j, from_j, to + p * width + j, width);
      }
    }
  }
#endif
  const int64_t whole_j = count - count % kBlock, whole_p = steps - steps % kBlock;
  for (int64_t j = 0; j < whole_j; j += kBlock) {
    for (int64_t p = j < squares ? square_steps : 0; p < whole_p; p += kBlock) {
      transpose_block(from + p + j * from_j, from_j, to + p * width + j, width);
    }
    for (int64_t p = whole_p; p < steps; ++p) {
      for (int64_t i = j; i < j + kBlock; ++i) to[p * width + i] = from[p + i * from_j];
    }
  }
  for (int64_t j = whole_j; j < count; ++j) {
    for (int64_t p = 0; p < steps; ++p) to[p * width + j] = from[p + j * from_j];
  }
}

// to[p * width + j] = from[p * from_p + j * from_j] for p < steps, j < count; zero for count <= j < width.
template <class T>
void pack_panel(const T* from, int64_t from_p, int64_t from_j, int64_t steps, int64_t count, int64_t width, T* to) {
  if (from_p == 1 && from_j != 1) {
    transpose_panel(from, from_j, steps, count, width, to);
  } else if (from_j == 1) {
    if (count == kPanelWidth<T> && width == count) {
      for (int64_t p = 0; p < steps; ++p) {
        const T* row = from + p * from_p;
        const auto low = Lanes<T>::load(row), high = Lanes<T>::load(row + Lanes<T>::kCount);
        Lanes<T>::store(to + p * width, low);
        Lanes<T>::store(to + p * width + Lanes<T>::kCount, high);
      }
    } else {
      for (int64_t p = 0; p < steps; ++p) std::copy_n(from + p * from_p, count, to + p * width);
    }
  } else {
    for (int64_t p = 0; p < steps; ++p) {
      for (int64_t j = 0; j < count; ++j) to[p * width + j] = from[p * from_p + j * from_j];
    }
  }
  if (count < width) {
    for (int64_t p = 0; p < steps; ++p) std::fill_n(to + p * width + count, width - count, T(0));
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
