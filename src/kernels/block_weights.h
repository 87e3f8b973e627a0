#pragma once
// Rows of floats times weights of 2, 4 or 8 bits. Each block of the rows of a column has its own scale and zero point:
//
//   c[i, j] = sum over blocks b of scale[j, b] * (sum over k in b of a[i, k] * q[j, k]  -  zero[j, b] * sum of a[i, k])
//
// The sum of a block is one chain, and the sum over blocks is another, so a row's result depends neither on the number
// of rows nor on threads.

#include <cstddef>
#include <cstdint>

namespace treadle::kernels {

// Columns are packed in groups that lanes hold. For each block, a group has the words of its columns side by side, then
// their scales, then their zero points. A word is 32 / bits weights of one column as signed numbers, the first weight
// in the lowest bits.
struct BlockWeights {
  static constexpr int64_t kColumns = 32;

  int64_t k = 0, n = 0;
  int64_t block = 32;      // a multiple of 16
  int bits = 4;            // 2, 4 or 8
  bool has_zeros = false;  // zero points other than the middle of the range

  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t groups() const { return (n + kColumns - 1) / kColumns; }
  int64_t padded_k() const { return blocks() * block; }
  int64_t words() const { return block * bits / 32; }  // words of one column in one block
  int64_t block_words() const { return kColumns * (words() + 1 + (has_zeros ? 1 : 0)); }
  int64_t group_words() const { return blocks() * block_words(); }
  size_t packed_bytes() const { return static_cast<size_t>(groups() * group_words()) * sizeof(uint32_t); }
};

// `weights`: `words` of each block of each column, one after the other. `scales`: [n, blocks]. `zeros`: [n, blocks],
// counted from the middle of the range, or null. Ends early as pack_b (kernels/gemm.h) does.
void pack_block_weights(const BlockWeights& w, const std::byte* weights, const float* scales, const float* zeros,
                        void* packed);

struct BlockRows {
  int64_t rows = 0;
  const float* a = nullptr;  // the blocks of each row; zeros follow the k elements of a row
  int64_t a_row = 0;         // elements from one row to the next
  int64_t a_block = 0;  // elements from one block of a row to the next; with one or two rows, blocks must be contiguous
  const float* a_sums = nullptr;  // [rows, blocks]; not needed without zero points
  const float* bias = nullptr;    // [n], or null
  float* c = nullptr;
  int64_t c_row = 0;
  float* scratch = nullptr;  // block_rows_scratch() floats, for each thread
};
int64_t block_rows_scratch(const BlockWeights& w, int64_t rows);

// Computes the columns of the groups [begin, end).
using BlockRowsRun = void (*)(const BlockWeights& w, const void* packed, const BlockRows& rows, int64_t begin,
                              int64_t end);
// For preferred_isa().
BlockRowsRun block_rows();

}  // namespace treadle::kernels
