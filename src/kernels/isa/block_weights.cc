// Rows times weights of few bits (kernels/block_weights.h). With one or two rows, weights are unpacked as they are
// used. With more rows, each block is unpacked once, and tiles of several rows read it.

#include "kernels/block_weights.h"

#include <algorithm>

#include "kernels/isa/unrolled.h"
#include "kernels/isa/vector.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

BlockRowsRun block_rows();

namespace {

constexpr int kLanes = kFullLanes<float>;
constexpr int kVectors = static_cast<int>(BlockWeights::kColumns) / kLanes;
using F = Vec<float, kLanes>;
using I = Vec<int32_t, kLanes>;

// Weight `i` of each word, with its sign.
template <int kBits>
TREADLE_ALWAYS_INLINE F weight(I words, int i) {
  return convert_lanes<float>((words << (32 - kBits * (i + 1))) >> (32 - kBits));
}

TREADLE_ALWAYS_INLINE F scale_of(const BlockWeights& w, const int32_t* block, int v) {
  return F::load(reinterpret_cast<const float*>(block + w.words() * BlockWeights::kColumns) + v * kLanes);
}
TREADLE_ALWAYS_INLINE F zero_of(const BlockWeights& w, const int32_t* block, int v) {
  return F::load(reinterpret_cast<const float*>(block + (w.words() + 1) * BlockWeights::kColumns) + v * kLanes);
}

// The results of a row with the contribution of a block added.
TREADLE_ALWAYS_INLINE F added(const BlockWeights& w, const int32_t* block, int v, F sum, float a_sum, F before) {
  if (w.has_zeros) sum = multiply_add(-zero_of(w, block, v), F(a_sum), sum);
  return multiply_add(scale_of(w, block, v), sum, before);
}

// Stores the existing columns of a group, with the bias added.
void store_row(const BlockWeights& w, const BlockRows& r, int64_t row, int64_t group, const float* sums) {
  const int64_t first = group * BlockWeights::kColumns, count = std::min(w.n - first, BlockWeights::kColumns);
  float* c = r.c + row * r.c_row + first;
  for (int64_t j = 0; j < count; ++j) c[j] = r.bias ? sums[j] + r.bias[first + j] : sums[j];
}

template <int kBits, int kRows>
void few_rows(const BlockWeights& w, const int32_t* block, const BlockRows& r, int64_t row, int64_t group) {
  constexpr int kPerWord = 32 / kBits;
  const float* a[kRows];
  F sums[kRows][kVectors];
  unrolled<kRows>([&](auto i) __attribute__((always_inline)) {
    a[i] = r.a + (row + i) * r.a_row;
    unrolled<kVectors>([&](auto v) __attribute__((always_inline)) { sums[i][v] = F(0.0f); });
  });
  const int64_t blocks = w.blocks(), words = w.words();
  for (int64_t b = 0; b < blocks; ++b, block += w.block_words()) {
    F acc[kRows][kVectors];
    unrolled<kRows>([&](auto i) __attribute__((always_inline)) {
      unrolled<kVectors>([&](auto v) __attribute__((always_inline)) { acc[i][v] = F(0.0f); });
    });
    for (int64_t word = 0; word < words; ++word) {
      I packed[kVectors];
      unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
        packed[v] = I::load(block + word * BlockWeights::kColumns + v * kLanes);
      });
      unrolled<kPerWord>([&](auto i) __attribute__((always_inline)) {
        unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
          const F q = weight<kBits>(packed[v], i);
          unrolled<kRows>([&](auto x)
                              __attribute__((always_inline)) { acc[x][v] = multiply_add(F(a[x][i]), q, acc[x][v]); });
        });
      });
      for (const float*& at : a) at += kPerWord;
    }
    unrolled<kRows>([&](auto x) __attribute__((always_inline)) {
      const float a_sum = w.has_zeros ? r.a_sums[(row + x) * blocks + b] : 0;
      unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
        sums[x][v] = added(w, block, v, acc[x][v], a_sum, sums[x][v]);
      });
    });
  }
  for (int x = 0; x < kRows; ++x) {
    float out[BlockWeights::kColumns];
    for (int v = 0; v < kVectors; ++v) sums[x][v].store(out + v * kLanes);
    store_row(w, r, row + x, group, out);
  }
}

// The weights of a block as floats, [block, kColumns].
template <int kBits>
void unpack(const BlockWeights& w, const int32_t* block, float* weights) {
  constexpr int kPerWord = 32 / kBits;
  for (int64_t word = 0; word < w.words(); ++word) {
    unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
      const I packed = I::load(block + word * BlockWeights::kColumns + v * kLanes);
      unrolled<kPerWord>([&](auto i) __attribute__((always_inline)) {
        weight<kBits>(packed, i).store(weights + (word * kPerWord + i) * BlockWeights::kColumns + v * kLanes);
      });
    });
  }
}

// Rows and vectors of a tile: enough sums to hide the latency of a multiply-add, and no more than the registers hold.
constexpr int kTileRows = 6, kTileVectors = 2;
constexpr int kTileColumns = kTileVectors * kLanes;

// `sums`: [kRows, kColumns], the sums of the blocks before, from column `first` on.
template <int kRows>
void tile(const BlockWeights& w, const int32_t* block, int64_t b, int first, const float* weights, const BlockRows& r,
          int64_t row, float* sums) {
  F acc[kRows][kTileVectors];
  unrolled<kRows>([&](auto i) __attribute__((always_inline)) {
    unrolled<kTileVectors>([&](auto v) __attribute__((always_inline)) { acc[i][v] = F(0.0f); });
  });
  const float* a = r.a + row * r.a_row + b * r.a_block;
  weights += first;
  for (int64_t k = 0; k < w.block; ++k, weights += BlockWeights::kColumns) {
    F q[kTileVectors];
    unrolled<kTileVectors>([&](auto v) __attribute__((always_inline)) { q[v] = F::load(weights + v * kLanes); });
    unrolled<kRows>([&](auto i) __attribute__((always_inline)) {
      const F x(a[i * r.a_row + k]);
      unrolled<kTileVectors>([&](auto v)
                                 __attribute__((always_inline)) { acc[i][v] = multiply_add(x, q[v], acc[i][v]); });
    });
  }
  unrolled<kRows>([&](auto i) __attribute__((always_inline)) {
    const float a_sum = w.has_zeros ? r.a_sums[(row + i) * w.blocks() + b] : 0;
    unrolled<kTileVectors>([&](auto v) __attribute__((always_inline)) {
      const int vector = first / kLanes + v;
      float* at = sums + i * BlockWeights::kColumns + vector * kLanes;
      added(w, block, vector, acc[i][v], a_sum, F::load(at)).store(at);
    });
  });
}

// The last rows if they are fewer than a tile has.
template <int kRows>
void last_rows(const BlockWeights& w, const int32_t* block, int64_t b, int first, const float* weights,
               const BlockRows& r, int64_t row, float* sums) {
  if (r.rows - row == kRows) return tile<kRows>(w, block, b, first, weights, r, row, sums);
  if constexpr (kRows > 1) last_rows<kRows - 1>(w, block, b, first, weights, r, row, sums);
}

template <int kBits>
void many_rows(const BlockWeights& w, const int32_t* block, const BlockRows& r, int64_t group) {
  float* weights = r.scratch;
  float* sums = weights + w.block * BlockWeights::kColumns;
  std::fill_n(sums, r.rows * BlockWeights::kColumns, 0.0f);
  for (int64_t b = 0; b < w.blocks(); ++b, block += w.block_words()) {
    unpack<kBits>(w, block, weights);
    for (int first = 0; first < BlockWeights::kColumns; first += kTileColumns) {
      int64_t row = 0;
      for (; row + kTileRows <= r.rows; row += kTileRows) {
        tile<kTileRows>(w, block, b, first, weights, r, row, sums + row * BlockWeights::kColumns);
      }
      last_rows<kTileRows - 1>(w, block, b, first, weights, r, row, sums + row * BlockWeights::kColumns);
    }
  }
  for (int64_t row = 0; row < r.rows; ++row) store_row(w, r, row, group, sums + row * BlockWeights::kColumns);
}

template <int kBits>
void run_groups(const BlockWeights& w, const void* packed, const BlockRows& r, int64_t begin, int64_t end) {
  const auto* words = static_cast<const int32_t*>(packed);
  for (int64_t group = begin; group < end; ++group) {
    const int32_t* block = words + group * w.group_words();
    const bool in_order = r.a_block == w.block;  // false for the last rows of many
    if (r.rows == 1 && in_order) {
      few_rows<kBits, 1>(w, block, r, 0, group);
    } else if (r.rows == 2 && in_order) {
      few_rows<kBits, 2>(w, block, r, 0, group);
    } else {
      many_rows<kBits>(w, block, r, group);
    }
  }
}

void run(const BlockWeights& w, const void* packed, const BlockRows& r, int64_t begin, int64_t end) {
  if (w.bits == 2) return run_groups<2>(w, packed, r, begin, end);
  if (w.bits == 4) return run_groups<4>(w, packed, r, begin, end);
  return run_groups<8>(w, packed, r, begin, end);
}

}  // namespace

BlockRowsRun block_rows() {
  return run;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
