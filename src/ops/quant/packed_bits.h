#pragma once
// Numbers of 2, 4 or 8 bits that a model packs into bytes.

#include "ops/fused/calls.h"

namespace treadle::quant {

// The numbers in bytes [..., n], the first of a byte in its lowest bits, as floats [..., n * 8 / bits].
ir::Value* split(LowerContext& ctx, ir::Value* bytes, int64_t bits);

// Of bytes [rows, ...] the first `count` of each row, as floats [rows, count].
ir::Value* unpacked(LowerContext& ctx, ir::Value* bytes, int64_t bits, int64_t rows, int64_t count);

}  // namespace treadle::quant
