#pragma once
// Copies parts of a strided matrix into the orders that tiles read.

#include <algorithm>
#include <cstdint>
#include <cstring>

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

// to[p * width + j] = from[p * from_p + j * from_j] for p < steps, j < count; zero for count <= j < width.
template <class T>
void pack_panel(const T* from, int64_t from_p, int64_t from_j, int64_t steps, int64_t count, int64_t width, T* to) {
  constexpr int64_t kBlock = 16 / sizeof(T);
  if (from_p == 1 && from_j != 1) {
    const int64_t whole_j = count - count % kBlock, whole_p = steps - steps % kBlock;
    for (int64_t j = 0; j < whole_j; j += kBlock) {
      for (int64_t p = 0; p < whole_p; p += kBlock) {
        transpose_block(from + p + j * from_j, from_j, to + p * width + j, width);
      }
      for (int64_t p = whole_p; p < steps; ++p) {
        for (int64_t i = j; i < j + kBlock; ++i) to[p * width + i] = from[p + i * from_j];
      }
    }
    for (int64_t j = whole_j; j < count; ++j) {
      for (int64_t p = 0; p < steps; ++p) to[p * width + j] = from[p + j * from_j];
    }
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
