#pragma once
// Random numbers as a function of a counter: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011). Element i of a sequence depends only on the sequence's key and stream and on i, so any part of a result
// may be computed anywhere, in any order. No multiplication is fused with an addition here, so every instruction set
// gives the same bits.
//
// Elements are made in groups of 8 blocks of the generator, in the order in which vectors of up to 64 bytes store them
// without moving lanes. Words 0 and 1 of the blocks make the first half of a group, words 2 and 3 the second half:
//   float: 32 elements; element 2 b + w is made of word w of block b, element 16 + 2 b + w of word 2 + w
//   double: 16 elements; element b is made of words 0 (low) and 1 (high) of block b, element 8 + b of words 2 and 3
// Two elements at the same position of the two halves make two normal numbers (Box and Muller).

#include <cstddef>
#include <cstdint>
#include <limits>

namespace treadle::kernels {

// One sequence of numbers.
struct RandomKey {
  uint64_t key = 0, stream = 0;
};

inline constexpr size_t kRandomGroup = 32;  // elements; a multiple of the group size of either type

// A standard number z becomes offset + scale z, but at most `most`.
template <class T>
struct RandomScale {
  T offset = 0, scale = 1;
  T most = std::numeric_limits<T>::infinity();
};

// Elements [first, first + n) of a sequence; `first` is a multiple of kRandomGroup.
template <class T>
struct RandomRows {
  // Standard numbers are whole numbers of `bits` bits: 1 to 24 for float, 1 to 53 for double.
  void (*uniform)(RandomKey key, uint64_t first, int bits, const RandomScale<T>& to, T* out, size_t n) = nullptr;
  // Standard numbers are normal, with mean 0 and variance 1. Their distance from 0 is at most 6.77 (float) or 8.66
  // (double).
  void (*normal)(RandomKey key, uint64_t first, const RandomScale<T>& to, T* out, size_t n) = nullptr;
};

struct RandomKernels {
  RandomRows<float> f32;
  RandomRows<double> f64;

  template <class T>
  const RandomRows<T>& rows() const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return f32;
    } else {
      return f64;
    }
  }
};

// For preferred_isa().
const RandomKernels& random_kernels();

}  // namespace treadle::kernels
