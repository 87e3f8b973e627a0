#pragma once
// RotaryEmbedding rotates pairs of elements of each head by the angle of their position.

#include "kernels/convert.h"
#include "op/kernel.h"

namespace treadle::attention {

struct RotaryState {
  enum Input : size_t { kData, kCos, kSin, kPositions };

  int64_t batch = 0, heads = 0, length = 0, size = 0;
  int64_t head_stride = 0, row_stride = 0;  // in elements
  int64_t half = 0;                         // pairs that are rotated
  bool interleaved = false;
  int64_t positions = 0;  // rows of the table of angles; 0: one row per token
  ElementType type = ElementType::kFloat;
  kernels::TileConverter widen, narrow;
  uint32_t output = 3, scratch = 4;
};

uint32_t run_rotary(const void* state, void* const* slots, const uint32_t* operands);

}  // namespace treadle::attention
