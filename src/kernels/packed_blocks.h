#pragma once
// Blocks of weights in the formats of GGUF files: some bytes stand for 32, 64 or 256 numbers, which share scales.

#include <cstdint>
#include <span>
#include <string_view>

namespace treadle::kernels {

struct PackedFormat {
  int64_t id = 0;  // of the format in GGUF files, which operators name it by
  std::string_view name;
  int64_t numbers = 0;  // that a block stands for
  int64_t bytes = 0;    // of a block
  // The numbers of a block.
  void (*unpack)(const uint8_t* block, float* numbers) = nullptr;
};

inline constexpr int64_t kMostPackedNumbers = 256;

// By their ids.
std::span<const PackedFormat> packed_formats();
// Null where there is none.
const PackedFormat* packed_format(int64_t id);

}  // namespace treadle::kernels
