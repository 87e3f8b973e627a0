#pragma once
// Rows of floats times weights of 2, 4 or 8 bits, whose scale and zero point belong to blocks of the rows of a column:
//
//   c[i, j] = sum over blocks b of scale[j, b] * (sum over k in b of a[i, k] * q[j, k]  -  zero[j, b] * sum of a[i, k])
//
// The sums of a block are one chain each, and so is the sum over blocks, so that a row's result depends neither on how
// many rows there are nor on threads.

#include <cstddef>
#include <cstdint>

namespace treadle::kernels {

// Columns go in groups that lanes hold. Of each block a group has the words of its columns side by side (32 / bits
// weights of a column make a word, the first in the lowest bits, as signed numbers), then their scales, then their zero
// points.
struct BlockWeights {
  static constexpr int64_t kColumns = 32;

  int64_t k = 0, n = 0;
  int64_t block = 32;      // a multiple of 16
  int bits = 4;            // 2, 4 or 8
  bool has_zeros = false;  // other than the middle of the range

  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t groups() const { return (n + kColumns - 1) / kColumns; }
  int64_t padded_k() const { return blocks() * block; }
  int64_t words() const { return block * bits / 32; }  // of a column in a block
  int64_t block_words() const { return kColumns * (words() + 1 + (has_zeros ? 1 : 0)); }
  int64_t group_words() const { return blocks() * block_words(); }
  size_t packed_bytes() const { return static_cast<size_t>(groups() * group_words()) * sizeof(uint32_t); }
};

// Weights as they are stored: `words` of each block of each column behind each other; scales [n, blocks]; zeros [n,
// blocks], counted from the middle of the range, or null. Ends early as pack_b (kernels/gemm.h) does.
void pack_block_weights(const BlockWeights& w, const std::byte* weights, const float* scales, const float* zeros,
                        void* packed);

struct BlockRows {
  int64_t rows = 0;
  const float* a = nullptr;  // of each row its blocks, zeros behind the k that count
  int64_t a_row = 0;         // elements from one row to the next
  int64_t a_block = 0;       // and from one block of a row to the next; of one or two rows blocks lie behind each other
  const float* a_sums = nullptr;  // [rows, blocks]; not needed without zero points
  const float* bias = nullptr;    // [n], or null
  float* c = nullptr;
  int64_t c_row = 0;
  float* scratch = nullptr;  // block_rows_scratch() floats, for each thread
};
int64_t block_rows_scratch(const BlockWeights& w, int64_t rows);

// Columns of the groups [begin, end).
using BlockRowsRun = void (*)(const BlockWeights& w, const void* packed, const BlockRows& rows, int64_t begin,
                              int64_t end);
// Of preferred_isa().
BlockRowsRun block_rows();

}  // namespace treadle::kernels
