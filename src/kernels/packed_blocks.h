#pragma once
// Blocks of weights in the formats of GGUF files: a block of bytes stands for 32, 64 or 256 numbers that share scales.

#include <cstdint>
#include <span>
#include <string_view>

namespace treadle::kernels {

struct PackedFormat {
  int64_t id = 0;  // the format's number in GGUF files, by which operators name it
  std::string_view name;
  int64_t numbers = 0;  // numbers in a block
  int64_t bytes = 0;    // bytes of a block
  // Unpacks the numbers of a block.
  void (*unpack)(const uint8_t* block, float* numbers) = nullptr;
};

inline constexpr int64_t kMostPackedNumbers = 256;

// All formats, by id.
std::span<const PackedFormat> packed_formats();
// The format of this id; null if there is none.
const PackedFormat* packed_format(int64_t id);

}  // namespace treadle::kernels
