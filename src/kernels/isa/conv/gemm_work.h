#pragma once
// What a product of kernels/isa/gemm/ does.

#include <algorithm>
#include <cstdint>

#include "kernels/isa/conv/work.h"
#include "kernels/isa/gemm/dots.h"
#include "kernels/isa/gemm/tile_choice.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// Steps of a block (near_steps), as many as caches of 48 KB and 2 MB have room for: a constant, so that one choice
// holds for all processors of an instruction set.
inline constexpr int64_t kBlockSteps = kVectorRegisters == 32 ? 2048 : 768;

// A product with rows x columns results. Lanes hold columns, and each row of a panel of columns begins a cache line.
template <class T>
struct GemmWork {
  GemmWork(int64_t rows, int64_t columns, int64_t steps) {
    const int64_t most = wide_vectors<T>(balanced_rows<T>(rows));
    int64_t left = vectors_of<T>(columns);
    elements = tail_elements<T>(steps, rows, columns);
    tiles = count(tiles_of<T>(rows) * parts_of(left, most));
    for (int64_t wide = most; left > 0; wide = wide == 3 ? 2 : wide / 2) {
      products += count(left / wide) * column_products<T>(steps, rows, wide, 1);
      panels += count(left / wide);
      left %= wide;
    }
  }
  double tiles = 0, panels = 0, products = 0, elements = 0;
};

// Products with so few columns are sums over vectors of steps, whose lanes are added up at the end (gemm/dots.h).
template <class T>
double dot_loads(int64_t dots, int64_t steps) {
  constexpr int64_t kAddUp = 6;
  return count(dots * (vectors_of<T>(steps) + kAddUp));
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
