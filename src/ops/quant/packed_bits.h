#pragma once
// Numbers of 2, 4 or 8 bits that a model packs into bytes.

#include "ops/fused/calls.h"

namespace treadle::quant {

// The numbers in bytes [..., n] as floats [..., n * 8 / bits]. The first number of a byte is in its lowest bits.
ir::Value* split(LowerContext& ctx, ir::Value* bytes, int64_t bits);

// The first `count` numbers of each row of bytes [rows, ...], as floats [rows, count].
ir::Value* unpacked(LowerContext& ctx, ir::Value* bytes, int64_t bits, int64_t rows, int64_t count);

}  // namespace treadle::quant
