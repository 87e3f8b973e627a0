#pragma once
// Which register tile (gemm_tile.h) computes which part of a product: by rows, vectors of columns, and what B is made
// of.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/gemm.h"
#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

inline constexpr bool kManyRegisters = kVectorRegisters == 32;
// 12 sums and the four operands of a step fill 16 registers. Products of integers need one register more.
template <class T>
inline constexpr bool kThreeVectors = kVectorBytes == 32 && !std::is_integral_v<T>;

// Vectors per tile for tiles of `rows` rows where several panels are at hand: enough chains to hide the latency of an
// addition.
template <class T>
constexpr int wide_vectors(int64_t rows) {
  if (rows == 1) return 8;
  if (rows == 2) return kManyRegisters ? 8 : 4;
  if (rows == 3) return kManyRegisters || kThreeVectors<T> ? 4 : 2;
  if (rows == 4) return kManyRegisters ? 4 : kThreeVectors<T> ? 3 : 2;
  return 2;
}

struct TileChoice {
  TileMode mode;
  int64_t rows;
  int vectors;
  bool tail;
  bool second;     // of three vectors, the first is the second one of a panel
  bool beyond_l2;  // B does not fit the second-level cache
};

template <class T, TileMode kMode, class B, int kAhead>
TileFunction<T> tile_of_three(int64_t rows, bool second) {
  constexpr TileFunction<T> kTiles[2][2] = {
      {tile<T, 3, 3, kMode, false, B, kAhead>, tile<T, 3, 3, kMode, false, B, kAhead, 1>},
      {tile<T, 4, 3, kMode, false, B, kAhead>, tile<T, 4, 3, kMode, false, B, kAhead, 1>}};
  return kTiles[rows - 3][second];
}

template <class T, TileMode kMode, class B = T, int kAhead = 0>
TileFunction<T> wide_tile(int64_t rows, int vectors, bool second) {
  constexpr bool kLong = kManyRegisters;
  if (rows == 1) return vectors == 8 ? tile<T, 1, 8, kMode, false, B, kAhead> : tile<T, 1, 4, kMode, false, B, kAhead>;
  if (rows == 2) {
    if constexpr (kLong) {
      if (vectors == 8) return tile<T, 2, 8, kMode, false, B, kAhead>;
    }
    return tile<T, 2, 4, kMode, false, B, kAhead>;
  }
  if constexpr (kThreeVectors<T>) {
    if (vectors == 3) return tile_of_three<T, kMode, B, kAhead>(rows, second);
  }
  if constexpr (kLong || kThreeVectors<T>) {
    if (rows == 3) return tile<T, 3, 4, kMode, false, B, kAhead>;
  }
  if constexpr (kLong) {
    if (rows == 4) return tile<T, 4, 4, kMode, false, B, kAhead>;
  }
  return nullptr;
}

template <class T>
TileFunction<T> narrow_tile(TileMode mode, int64_t rows, int vectors, bool tail) {
  const auto pick = [&](auto& one, auto& one_tail, auto& two, auto& two_tail) {
    return (vectors == 1 ? (tail ? one_tail : one) : (tail ? two_tail : two))[rows - 1];
  };
  if (mode == TileMode::kRowA) {
    return pick(kTileTable<T, 1, TileMode::kRowA, false>, kTileTable<T, 1, TileMode::kRowA, true>,
                kTileTable<T, 2, TileMode::kRowA, false>, kTileTable<T, 2, TileMode::kRowA, true>);
  }
  return pick(kTileTable<T, 1, TileMode::kColumnA, false>, kTileTable<T, 1, TileMode::kColumnA, true>,
              kTileTable<T, 2, TileMode::kColumnA, false>, kTileTable<T, 2, TileMode::kColumnA, true>);
}

// Prefetch distances in bytes, of a tile of several panels. Tiles of T prefetch only from a B that does not fit the
// second-level cache. Widening an element takes twice the instructions for a byte, too many to have enough loads under
// way at a time, so tiles of Half and ScaledByte always prefetch; it costs them nothing where B is near.
inline constexpr int kPrefetchBytes = 2048, kWideningPrefetchBytes = 2048;
// The same for the only tile of its panels.
inline constexpr int kSingleTilePrefetchBytes = 8192;

// Tiles on panels of Half and of ScaledByte. The rows of A have to be contiguous.
template <class B>
TileFunction<float> widening_tile(int64_t rows, int vectors) {
  constexpr auto kRowA = TileMode::kRowA;
  if (vectors > 2) return wide_tile<float, kRowA, B, kWideningPrefetchBytes>(rows, vectors, false);
  return (vectors == 1 ? kTileTable<float, 1, kRowA, true, B> : kTileTable<float, 2, kRowA, true, B>)[rows - 1];
}

// The tile on panels of T. Sources that need it for floats beside panels of their own refer to that of f32.cc.
template <class T>
TileFunction<T> own_tile(const TileChoice& c) {
  constexpr auto kRowA = TileMode::kRowA;
  if constexpr (std::is_same_v<T, float>) {
    if (c.beyond_l2 && c.mode == kRowA && !c.tail && c.vectors == 2) {
      return kTileTable<T, 2, kRowA, false, T, kNextPanel>[c.rows - 1];
    }
  }
  if (c.vectors <= 2) return narrow_tile<T>(c.mode, c.rows, c.vectors, c.tail);
  if constexpr (std::is_same_v<T, float>) {
    if constexpr (kThreeVectors<T>) {
      if (c.beyond_l2 && c.mode == kRowA && c.vectors == 3) {
        return tile_of_three<T, kRowA, T, kNextPanel>(c.rows, c.second);
      }
    }
    if (c.beyond_l2 && c.mode == kRowA) return wide_tile<T, kRowA, T, kPrefetchBytes>(c.rows, c.vectors, c.second);
  }
  return c.mode == kRowA ? wide_tile<T, kRowA>(c.rows, c.vectors, c.second)
                         : wide_tile<T, TileMode::kColumnA>(c.rows, c.vectors, c.second);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
