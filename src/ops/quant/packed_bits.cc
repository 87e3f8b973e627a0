#include "ops/quant/packed_bits.h"

#include "type/make_tensor.h"

namespace treadle::quant {

ir::Value* split(LowerContext& ctx, ir::Value* bytes, int64_t bits) {
  const int64_t per_byte = 8 / bits;
  Tensor shifts = make_tensor(ElementType::kUint8, {per_byte});
  for (int64_t i = 0; i < per_byte; ++i) shifts.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(i * bits);
  ir::Value* parts = ctx.call("BitShift", {fused::unsqueeze(ctx, bytes, {-1}), ctx.constant(std::move(shifts))},
                              {ir::Attribute::of("direction", "RIGHT")});
  parts = ctx.call("BitwiseAnd", {parts, ctx.number((1 << bits) - 1, ElementType::kUint8)});
  parts = fused::cast(ctx, parts, ElementType::kUint8, ElementType::kFloat);
  // Merges the axis of bytes with that of their parts.
  ir::Value* sizes = fused::concat(ctx, {fused::sizes(ctx, bytes, 0, -1), ctx.constant_int64s({-1})});
  return ctx.call("Reshape", {parts, sizes});
}

ir::Value* unpacked(LowerContext& ctx, ir::Value* bytes, int64_t bits, int64_t rows, int64_t count) {
  bytes = ctx.call("Reshape", {bytes, ctx.constant_int64s({rows, -1})});
  return fused::slice(ctx, split(ctx, bytes, bits), ctx.constant_int64s({0}), ctx.constant_int64s({count}), 1);
}

}  // namespace treadle::quant
