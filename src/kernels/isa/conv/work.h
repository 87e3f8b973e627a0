#pragma once
// What a method of convolution does for a shape, counted. Prices (prices.h) turn counts into time, and the method that
// takes the least time is chosen.

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/conv_costs.h"
#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// Each method says beside its function what it counts where.
struct ConvWork {
  double products = 0;  // multiply-adds of vectors (tile_products)
  double loads = 0;     // vectors read besides: partial sums, pieces that are gathered
  double weights = 0;   // vectors of weights read from beyond the first-level cache (weight_reads)
  double copies = 0;    // vectors copied, packed or transposed
  double elements = 0;  // elements or addresses handled one at a time
  double stores = 0;    // vectors of results
  double begun = 0;     // tiles, rows and runs of steps that are begun

  std::array<double, kConvCounts> counts() const {
    return {products, loads, weights, copies, elements, stores, begun, 1};
  }
};

inline double count(int64_t n) {
  return static_cast<double>(n);
}
inline int64_t parts_of(int64_t all, int64_t part) {
  return (all + part - 1) / part;
}
template <class T>
int64_t vectors_of(int64_t elements) {
  return parts_of(elements, Lanes<T>::kCount);
}

// A load of a vector that does not begin with a line of the cache reads two lines, if the vector is as long as a line.
inline constexpr int64_t kApart = kVectorBytes == 64 ? 2 : 1;

inline constexpr int kUnderWay = 8;  // multiply-adds that keep the units busy

// Multiply-adds of a tile of rows x vectors sums, in half cycles of units that begin two in each cycle. A tile with few
// sums waits for its loads, which are two in a cycle as well, or for the sums themselves: a multiply-add takes four
// cycles. `reads`: the loads of a vector, kApart where it lies anywhere.
inline double tile_products(int64_t steps, int64_t rows, int64_t vectors, int64_t reads = kApart) {
  return count(steps * std::max({rows * vectors, rows + vectors * reads, int64_t{kUnderWay}}));
}

// Multiply-adds of the tiles down `rows` rows, which are of about equal height (each_tile).
template <class T>
double column_products(int64_t steps, int64_t rows, int64_t vectors, int64_t reads = kApart) {
  const int64_t tiles = tiles_of<T>(rows), low = rows / tiles, higher = rows % tiles;
  return count(tiles - higher) * tile_products(steps, low, vectors, reads) +
         count(higher) * tile_products(steps, low + 1, vectors, reads);
}

// Vectors of `elements` weights that each of `sweeps` over them reads, unless all stay in the first-level cache.
template <class T>
double weight_reads(double sweeps, int64_t elements) {
  constexpr int64_t kNearBytes = 24 << 10;  // of 32 KB or 48 KB
  if (elements * static_cast<int64_t>(sizeof(T)) <= kNearBytes) return 0;
  return sweeps * count(vectors_of<T>(elements));
}

// Elements that tiles down `rows` rows read one at a time, because their last vector of columns is not full: where
// there are no loads under a mask.
template <class T>
double tail_elements(int64_t steps, int64_t rows, int64_t columns) {
#if defined(__AVX2__)
  constexpr bool kMasks = true;
#else
  constexpr bool kMasks = false;
#endif
  return kMasks ? 0 : count(steps * tiles_of<T>(rows) * (columns % Lanes<T>::kCount));
}

// Multiply-adds of one channel whose vectors of positions are taken eight, four and one at a time.
inline double stretch_products(int64_t taps, int64_t vectors, int64_t reads = kApart) {
  const int64_t rest = vectors % 8, single = rest % 4;
  return count(vectors / 8) * tile_products(taps, 1, 8, reads) + count(rest / 4) * tile_products(taps, 1, 4, reads) +
         count(single) * tile_products(taps, 1, 1, reads);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
