#include "kernels/block_weights.h"

#include <algorithm>
#include <cstring>

#include "base/stop.h"
#include "kernels/costs.h"
#include "kernels/isa/each.h"

namespace treadle::kernels {

TREADLE_IN_EACH_ISA(BlockRowsRun block_rows();)

BlockRowsRun block_rows() {
  return TREADLE_OF_ISA(preferred_isa(), block_rows)();
}

int64_t block_rows_scratch(const BlockWeights& w, int64_t rows) {
  return BlockWeights::kColumns * (rows + w.block);
}

namespace {

// A mask that turns unsigned weights into signed ones, counted from the middle of the range: it flips the highest bit
// of each weight.
uint32_t sign_bits(int bits) {
  uint32_t flips = 0;
  for (int at = bits - 1; at < 32; at += bits) flips |= uint32_t{1} << at;
  return flips;
}

// `column` is null for a column behind the last one; its weights, scales and zero points are zero. Returns false if
// packing was told to stop.
bool pack_column(const BlockWeights& w, const std::byte* column, const float* scales, const float* zeros,
                 uint32_t* packed, StopPoll& stop) {
  const uint32_t flips = sign_bits(w.bits);
  const int64_t words = w.words();
  for (int64_t b = 0; b < w.blocks(); ++b, packed += w.block_words()) {
    if (stop.after(costs::kBlockWordNs * static_cast<double>(words + 1))) return false;
    for (int64_t i = 0; i < words; ++i) {
      uint32_t word = flips;
      if (column) std::memcpy(&word, column + (b * words + i) * static_cast<int64_t>(sizeof(word)), sizeof(word));
      packed[i * BlockWeights::kColumns] = word ^ flips;
    }
    const float scale = column ? scales[b] : 0;
    std::memcpy(packed + words * BlockWeights::kColumns, &scale, sizeof(scale));
    if (!w.has_zeros) continue;
    const float zero = column ? zeros[b] : 0;
    std::memcpy(packed + (words + 1) * BlockWeights::kColumns, &zero, sizeof(zero));
  }
  return true;
}

}  // namespace

void pack_block_weights(const BlockWeights& w, const std::byte* weights, const float* scales, const float* zeros,
                        void* packed) {
  auto* out = static_cast<uint32_t*>(packed);
  const int64_t blocks = w.blocks(), column_bytes = blocks * w.words() * static_cast<int64_t>(sizeof(uint32_t));
  StopPoll stop;
  for (int64_t j = 0; j < w.groups() * BlockWeights::kColumns; ++j) {
    uint32_t* column = out + j / BlockWeights::kColumns * w.group_words() + j % BlockWeights::kColumns;
    const bool there = j < w.n;
    const bool goes_on =
        pack_column(w, there ? weights + j * column_bytes : nullptr, there ? scales + j * blocks : nullptr,
                    there && zeros ? zeros + j * blocks : nullptr, column, stop);
    if (!goes_on) return;
  }
}

}  // namespace treadle::kernels
