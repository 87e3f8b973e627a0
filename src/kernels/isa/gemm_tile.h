#pragma once
// The register tile that every product is made of: kRows x (kVectors * lanes) elements of C, all of k at once or a
// part of it, each element one chain of mul_add over k.
//
// B comes as panels of two vectors: vector v of step p is at b + p * b_step + (v / 2) * b_panel + (v % 2) * lanes. For
// packed B b_step is the panel's width; for B as it lies in memory b_step is its row stride and b_panel the panel's
// width. A tile of three vectors may begin with the second one of a panel (kFirst = 1): b is where that one is, and
// vectors 1 and 2 are the next panel's.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/isa/lanes.h"
#include "kernels/isa/unrolled.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// C = min(high, max(low, alpha * sum + beta * bias + addend)), from left to right.
template <class T>
struct Epilogue {
  T alpha = 1, beta = 1;
  const T* bias = nullptr;  // of the tile's first element; null: none
  int64_t bias_row = 0, bias_col = 1;
  const T* addend = nullptr;  // of the tile's first element, lies like C; null: none
  bool clamps = false;        // not for integers, nor is the addend
  T low = 0, high = 0;
};

// An element of B that is a byte, which a scale of its column makes a float.
struct ScaledByte {
  int8_t value;
};

// As many bytes as a vector has floats, as floats.
inline Lanes<float>::V load_bytes(const ScaledByte* p) {
  typedef int8_t Bytes __attribute__((vector_size(Lanes<float>::kCount)));
  typedef float Floats __attribute__((vector_size(kVectorBytes)));
  Bytes bytes;
  std::memcpy(&bytes, p, sizeof bytes);
  return Lanes<float>::V(__builtin_convertvector(bytes, Floats));
}

template <class T>
struct TileArgs {
  const T* a = nullptr;
  int64_t a_row = 0, a_col = 1;
  const void* b = nullptr;         // of T, of Half, or of ScaledByte
  const float* b_scale = nullptr;  // of ScaledByte: of the tile's columns
  int64_t b_step = 0, b_panel = 0;
  const int64_t* b_offset = nullptr;  // kIndirectB: where step p begins, instead of p * b_step
  int64_t k = 0;
  T* c = nullptr;
  int64_t c_row = 0;
  int last_lanes = 0;      // lanes of the last vector that exist
  const T* sum = nullptr;  // the sum over the steps before these; null: there are none
  int64_t sum_row = 0;
  bool partial = false;  // more steps follow: no epilogue yet
  const Epilogue<T>* epilogue = nullptr;
  // kNextPanel: what to prefetch, `next_step` bytes further on at each step. A tile with a prefetch distance: the
  // panels that are read after those of the tile.
  const char* next = nullptr;
  int64_t next_step = 0;
};

enum class TileMode { kRowA, kColumnA, kIndirectB };  // a_col == 1; a_row == 1 (or one row); a_row == 1 and b_offset

// As many rows as leave registers for two vectors of B and one element of A.
template <class T>
inline constexpr int kMaxRows = std::is_integral_v<T>    ? 4
                                : kVectorRegisters == 32 ? 12
                                : kVectorBytes == 32     ? 6
                                                         : 4;

// The epilogue for a tile whose sums are stored in rows of `columns` elements, a multiple of the lanes.
template <class T>
[[gnu::noinline]] void finish(const TileArgs<T>& t, const T* sums, int rows, int columns) {
  using L = Lanes<T>;
  const Epilogue<T>& e = *t.epilogue;
  const auto alpha = L::splat(e.alpha), beta = L::splat(e.beta);
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < columns; v += L::kCount) {
      const int lanes = v + L::kCount == columns ? t.last_lanes : L::kCount;
      const auto mask = L::mask(lanes);
      auto value = L::load(sums + r * columns + v);
      if (e.alpha != T(1)) value = L::mul(value, alpha);
      if (e.bias != nullptr) {
        const T* bias = e.bias + r * e.bias_row + v * e.bias_col;
        auto addend = L::zero();
        if (e.bias_col == 1) {
          addend = L::load(bias, mask);
        } else if (e.bias_col == 0) {
          addend = L::splat(*bias);
        } else {
          T gathered[L::kCount] = {};
          for (int i = 0; i < lanes; ++i) gathered[i] = bias[i * e.bias_col];
          addend = L::load(gathered);
        }
        if (e.beta != T(1)) addend = L::mul(addend, beta);
        value = L::add(value, addend);
      }
      if constexpr (!std::is_integral_v<T>) {
        if (e.addend != nullptr) value = L::add(value, L::load(e.addend + r * t.c_row + v, mask));
        if (e.clamps) value = L::min(L::splat(e.high), L::max(L::splat(e.low), value));
      }
      L::store(t.c + r * t.c_row + v, mask, value);
    }
  }
}

inline constexpr int kLine = 64;  // bytes
inline constexpr int kNextPanel = -1;

// Prefetches what the epilogue reads: rows of a recurrence's input come from memory, once per step. A row that all rows
// share is in a cache already.
template <class T, int kRows, int kVectors>
[[gnu::always_inline]] inline void prefetch_addends(const TileArgs<T>& t) {
  const auto fetch = [](const T* from, int64_t row) __attribute__((always_inline)) {
    for (int r = 0; r < kRows; ++r, from += row) {
      for (int b = 0; b < kVectors * kVectorBytes; b += kLine) {
        __builtin_prefetch(reinterpret_cast<const char*>(from) + b);
      }
    }
  };
  const Epilogue<T>& e = *t.epilogue;
  if (e.bias != nullptr && e.bias_col == 1 && (kRows == 1 || e.bias_row != 0)) fetch(e.bias, e.bias_row);
  if (e.addend != nullptr) fetch(e.addend, t.c_row);
}

// Prefetches the lines that results go to: a store that misses would wait for its line, and the stores behind it for
// that store.
template <class T, int kRows, int kVectors>
[[gnu::always_inline]] inline void prefetch_results(const TileArgs<T>& t) {
  for (int r = 0; r < kRows; ++r) {
    for (int b = 0; b < kVectors * kVectorBytes; b += kLine) {
      __builtin_prefetch(reinterpret_cast<const char*>(t.c + r * t.c_row) + b, 1);
    }
  }
}

// Rows of `kVectors` vectors in memory; with kTail, lanes of the last one are missing.
template <class T, int kVectors, bool kTail>
struct TileRow {
  using L = Lanes<T>;
  using V = typename L::V;

  explicit TileRow(int last_lanes) : tail(L::mask(last_lanes)) {}

  [[gnu::always_inline]] V load(const T* row, int v) const {
    return kTail && v == kVectors - 1 ? L::load(row + v * L::kCount, tail) : L::load(row + v * L::kCount);
  }
  [[gnu::always_inline]] void store(T* row, int v, V value) const {
    if (kTail && v == kVectors - 1) {
      L::store(row + v * L::kCount, tail, value);
    } else {
      L::store(row + v * L::kCount, value);
    }
  }

  const decltype(L::mask(0)) tail;
};

// The sums of a tile, in registers.
template <class T, int kRows, int kVectors>
using TileSums = typename Lanes<T>::V[kRows][kVectors];

// The sums over the steps before those of the tile.
template <class T, int kRows, int kVectors, bool kTail>
[[gnu::always_inline]] inline void begin_sums(const TileArgs<T>& t, const TileRow<T, kVectors, kTail>& row,
                                              TileSums<T, kRows, kVectors>& acc) {
  unrolled<kRows>([&](auto r) __attribute__((always_inline)) {
    unrolled<kVectors>([&](auto v) __attribute__((always_inline)) { acc[r][v] = Lanes<T>::zero(); });
  });
  if (t.sum == nullptr) return;
  unrolled<kRows>([&](auto r) __attribute__((always_inline)) {
    unrolled<kVectors>([&](auto v) __attribute__((always_inline)) { acc[r][v] = row.load(t.sum + r * t.sum_row, v); });
  });
}

// Where a tile takes every register, the compiler must not load the next operand before it has used this one.
template <class V>
[[gnu::always_inline]] inline void finish_before_next_load([[maybe_unused]] V& sum) {
#if defined(__AVX2__)
  asm volatile("" : "+x"(sum)::"memory");
#endif
}

// All steps of the tile. kAhead: the prefetch distance in bytes, in each panel; 0: none; kNextPanel: the tile
// prefetches what the arguments say.
template <class T, int kRows, int kVectors, TileMode kMode, bool kTail, class B, int kAhead, int kFirst>
[[gnu::always_inline]] inline void add_products(const TileArgs<T>& t, const TileRow<T, kVectors, kTail>& row,
                                                TileSums<T, kRows, kVectors>& acc) {
  using L = Lanes<T>;
  using V = typename L::V;
  // Rows in threes share a pointer: base, base + stride, base + 2 * stride are all addressing modes of one instruction.
  constexpr int kGroups = (kRows + 2) / 3;
  const T* a[kGroups];
  const int64_t a_row = kMode == TileMode::kRowA ? t.a_row : 1;
  const int64_t a_col = kMode == TileMode::kRowA ? 1 : t.a_col;
  unrolled<kGroups>([&](auto g) __attribute__((always_inline)) { a[g] = t.a + 3 * g * a_row; });
  // Panels of Half and of ScaledByte are padded: their last vector is whole.
  [[maybe_unused]] const float* const scale = t.b_scale;
  const auto load_b = [&](const B* p, int v) __attribute__((always_inline)) {
    if constexpr (std::is_same_v<B, T>) {
      return row.load(p, v);
    } else if constexpr (std::is_same_v<B, ScaledByte>) {
      return L::mul(load_bytes(p + v * L::kCount), L::load(scale + v * L::kCount));
    } else {
      return L::load(p + v * L::kCount);
    }
  };
  const B* b = static_cast<const B*>(t.b);
  [[maybe_unused]] const char* next = t.next;
  const auto step = [&](int64_t p) __attribute__((always_inline)) {
    const B* from = kMode == TileMode::kIndirectB ? b + t.b_offset[p] : b;
    if constexpr (kAhead > 0) {
      constexpr int kPerLine = kLine / (L::kCount * int{sizeof(B)});  // vectors
      unrolled<(kVectors + kPerLine - 1) / kPerLine>([&](auto line) __attribute__((always_inline)) {
        const int v = line * kPerLine;
        __builtin_prefetch(reinterpret_cast<const B*>(next) + (v / 2) * t.b_panel + v % 2 * L::kCount);
      });
      next += t.b_step * int64_t{sizeof(B)};
    } else if constexpr (kAhead == kNextPanel) {
      unrolled<2 * kVectorBytes / kLine>([&](auto line) __attribute__((always_inline)) {
        __builtin_prefetch(next + line * kLine, 0, 2);  // for the second-level cache
      });
      next += t.next_step;
    }
    const auto b_vector = [&](auto v) __attribute__((always_inline)) {
      return load_b(from + ((v + kFirst) / 2) * (t.b_panel - 2 * L::kCount), v);
    };
    const auto a_vector = [&](auto r) __attribute__((always_inline)) { return L::splat(a[r / 3][(r % 3) * a_row]); };
    // Registers hold the operands of which there are fewer.
    if constexpr (kRows < kVectors) {
      V x[kRows];
      unrolled<kRows>([&](auto r) __attribute__((always_inline)) { x[r] = a_vector(r); });
      unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
        const V bv = b_vector(v);
        unrolled<kRows>([&](auto r) __attribute__((always_inline)) { acc[r][v] = L::mul_add(x[r], bv, acc[r][v]); });
      });
    } else {
      V bv[kVectors];
      unrolled<kVectors>([&](auto v) __attribute__((always_inline)) { bv[v] = b_vector(v); });
      unrolled<kRows>([&](auto r) __attribute__((always_inline)) {
        const V x = a_vector(r);
        unrolled<kVectors>([&](auto v) __attribute__((always_inline)) { acc[r][v] = L::mul_add(x, bv[v], acc[r][v]); });
        if constexpr (kRows * kVectors + kVectors + 1 == kVectorRegisters) {
          unrolled<kVectors>([&](auto v) __attribute__((always_inline)) { finish_before_next_load(acc[r][v]); });
        }
      });
    }
    unrolled<kGroups>([&](auto g) __attribute__((always_inline)) { a[g] += a_col; });
    if (kMode != TileMode::kIndirectB) b += t.b_step;
  };
  const auto steps = [&](int64_t p, int64_t end) __attribute__((always_inline)) {
    if constexpr (kRows * kVectors >= 8) {
#pragma GCC unroll 1
      for (; p < end; ++p) step(p);
    } else {
#pragma GCC unroll 4
      for (; p < end; ++p) step(p);
    }
  };
  if constexpr (kAhead > 0) {
    const int64_t ahead = std::min(t.k, kAhead / (t.b_step * int64_t{sizeof(B)}));
    next = reinterpret_cast<const char*>(b + ahead * t.b_step);
    steps(0, t.k - ahead);
    if (t.next != nullptr) next = t.next;
    steps(t.k - ahead, t.k);
  } else {
    steps(0, t.k);
  }
}

// Whether finish_in_registers() does what is left to do: a bias is added as it is, as a row or as a number.
template <class T>
[[gnu::always_inline]] inline bool has_plain_epilogue(const TileArgs<T>& t) {
  const Epilogue<T>& e = *t.epilogue;
  return e.bias == nullptr || (e.beta == T(1) && (e.bias_col == 0 || e.bias_col == 1));
}

template <class T, int kRows, int kVectors, bool kTail>
[[gnu::always_inline]] inline void finish_in_registers(const TileArgs<T>& t, const TileRow<T, kVectors, kTail>& row,
                                                       TileSums<T, kRows, kVectors>& acc) {
  using L = Lanes<T>;
  using V = typename L::V;
  const Epilogue<T>* e = t.epilogue;
  const auto add_rows = [&](const T* from, int64_t stride) __attribute__((always_inline)) {
    unrolled<kRows>([&](auto r) __attribute__((always_inline)) {
      unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
        acc[r][v] = L::add(acc[r][v], row.load(from + r * stride, v));
      });
    });
  };
  if (e->alpha != T(1)) {
    const V alpha = L::splat(e->alpha);
    unrolled<kRows>([&](auto r) __attribute__((always_inline)) {
      unrolled<kVectors>([&](auto v) __attribute__((always_inline)) { acc[r][v] = L::mul(acc[r][v], alpha); });
    });
  }
  if (e->bias != nullptr) {
    if (e->bias_col == 1) {
      add_rows(e->bias, e->bias_row);
    } else if (e->bias_col == 0) {
      unrolled<kRows>([&](auto r) __attribute__((always_inline)) {
        const V addend = L::splat(e->bias[r * e->bias_row]);
        unrolled<kVectors>([&](auto v) __attribute__((always_inline)) { acc[r][v] = L::add(acc[r][v], addend); });
      });
    }
  }
  if constexpr (!std::is_integral_v<T>) {
    if (e->addend != nullptr) add_rows(e->addend, t.c_row);
    if (!e->clamps) return;
    const V low = L::splat(e->low), high = L::splat(e->high);
    unrolled<kRows>([&](auto r) __attribute__((always_inline)) {
      unrolled<kVectors>([&](auto v)
                             __attribute__((always_inline)) { acc[r][v] = L::min(high, L::max(low, acc[r][v])); });
    });
  }
}

template <class T, int kRows, int kVectors, TileMode kMode, bool kTail, class B = T, int kAhead = 0, int kFirst = 0>
void tile(const TileArgs<T>& t) {
  using L = Lanes<T>;
  const TileRow<T, kVectors, kTail> row(t.last_lanes);
  if (!t.partial) prefetch_addends<T, kRows, kVectors>(t);
  prefetch_results<T, kRows, kVectors>(t);
  TileSums<T, kRows, kVectors> acc;
  begin_sums<T, kRows>(t, row, acc);
  add_products<T, kRows, kVectors, kMode, kTail, B, kAhead, kFirst>(t, row, acc);
  if (t.partial || has_plain_epilogue(t)) {
    if (!t.partial) finish_in_registers<T, kRows>(t, row, acc);
    unrolled<kRows>([&](auto r) __attribute__((always_inline)) {
      unrolled<kVectors>([&](auto v) __attribute__((always_inline)) { row.store(t.c + r * t.c_row, v, acc[r][v]); });
    });
  } else {
    alignas(kVectorBytes) T sums[kRows * kVectors * L::kCount];
    unrolled<kRows>([&](auto r) __attribute__((always_inline)) {
      unrolled<kVectors>(
          [&](auto v) __attribute__((always_inline)) { L::store(sums + (r * kVectors + v) * L::kCount, acc[r][v]); });
    });
    finish(t, sums, kRows, kVectors * L::kCount);
  }
}

template <class T>
using TileFunction = void (*)(const TileArgs<T>&);

template <class T, int kVectors, TileMode kMode, bool kTail, class B, int kAhead, int... kRows>
constexpr std::array<TileFunction<T>, sizeof...(kRows)> tiles_by_rows(std::integer_sequence<int, kRows...>) {
  return {tile<T, kRows + 1, kVectors, kMode, kTail, B, kAhead>...};
}

// kTileTable<...>[rows - 1]
template <class T, int kVectors, TileMode kMode, bool kTail, class B = T, int kAhead = 0>
inline constexpr auto kTileTable =
    tiles_by_rows<T, kVectors, kMode, kTail, B, kAhead>(std::make_integer_sequence<int, kMaxRows<T>>());

// How many tiles `rows` rows take; tiles are of about equal height.
template <class T>
int64_t tiles_of(int64_t rows) {
  return (rows + kMaxRows<T> - 1) / kMaxRows<T>;
}

// The rows of the highest of these tiles.
template <class T>
int64_t balanced_rows(int64_t rows) {
  const int64_t tiles = tiles_of<T>(rows);
  return (rows + tiles - 1) / tiles;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
