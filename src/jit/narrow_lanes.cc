#include "jit/narrow_lanes.h"

#include "base/float_formats.h"

namespace treadle::jit {

using llvm::Value;

namespace {

using Words = IrLanes<uint32_t>;
using Floats = IrLanes<float>;

Words zero_extended(Value* x) {
  return Words::of(ir().CreateZExt(x, lanes_type<uint32_t>()));
}
Value* low_half(Words x) {
  return ir().CreateTrunc(x.v, lanes_of(ir().getInt16Ty(), IrScope::current().lanes));
}

// --- float16: formats::decode and formats::encode, for processors without instructions for it

constexpr uint32_t kSignBit = 0x80000000u, kFloatInfinity = 0x7f800000u;

Value* decoded(Value* half) {
  constexpr formats::Layout kHalf = formats::kFloat16;
  constexpr int kShift = 23 - kHalf.mantissa_bits;
  constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kHalf.bias) << 23;
  constexpr uint32_t kSubnormalStep = static_cast<uint32_t>(128 - kHalf.bias - kHalf.mantissa_bits) << 23;
  const Words code = zero_extended(half);
  const Words magnitude = code & Words(kHalf.all_ones());
  const Words sign = (code & Words(kHalf.sign_bit())) << 16;
  const Floats count = Floats::of(ir().CreateSIToFP(magnitude.v, lanes_type<float>()));
  const Words subnormal = to_bits(count * Floats(std::bit_cast<float>(kSubnormalStep)));
  const Words shifted = magnitude << kShift;
  const Words finite = select(magnitude < Words(1u << kHalf.mantissa_bits), subnormal, shifted + Words(kRebias));
  const Words quiet = select(magnitude > Words(kHalf.infinity()), Words(0x00400000u), Words(0u));
  const Words special = Words(kFloatInfinity) | shifted | quiet;
  return from_bits_of<Floats>(sign | select(magnitude >= Words(kHalf.infinity()), special, finite)).v;
}

Value* encoded(Value* x) {
  constexpr formats::Layout kHalf = formats::kFloat16;
  constexpr int kShift = 23 - kHalf.mantissa_bits;
  constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kHalf.bias) << 23;
  constexpr uint32_t kSmallestNormal = static_cast<uint32_t>(128 - kHalf.bias) << 23;
  constexpr uint32_t kSubnormalMagic = static_cast<uint32_t>(128 - kHalf.bias + kShift) << 23;
  const Words bits = to_bits(Floats::of(x));
  const Words magnitude = bits & Words(~kSignBit);
  const Words odd = (magnitude >> kShift) & Words(1u);
  const Words normal = (magnitude + Words((1u << (kShift - 1)) - 1 - kRebias) + odd) >> kShift;
  const Floats shifted = from_bits_of<Floats>(magnitude) + Floats(std::bit_cast<float>(kSubnormalMagic));
  const Words subnormal = to_bits(shifted) - Words(kSubnormalMagic);
  const IrMask overflows = (normal > Words(kHalf.largest())) | (magnitude >= Words(kFloatInfinity));
  const Words large = select(overflows, Words(kHalf.infinity()), normal);
  const Words code = select(magnitude < Words(kSmallestNormal), subnormal, large);
  const Words nan = Words(kHalf.nan()) | ((magnitude >> kShift) & Words((1u << kHalf.mantissa_bits) - 1));
  const Words sign = (bits & Words(kSignBit)) >> 16;
  return low_half(sign | select(magnitude > Words(kFloatInfinity), nan, code));
}

Value* fenced(Value* x) {
  return ir().CreateIntrinsic(llvm::Intrinsic::arithmetic_fence, {x->getType()}, {x});
}

Value* from_half(Value* half) {
  if (!IrScope::current().converts_halves) return decoded(half);
  Value* typed = ir().CreateBitCast(half, lanes_of(ir().getHalfTy(), IrScope::current().lanes));
  return extend(typed, lanes_type<float>());
}

// The fence keeps LLVM from computing in float16, where a NaN that only passes through would not become quiet.
Value* to_half(Value* x) {
  if (!IrScope::current().converts_halves) return encoded(x);
  const unsigned lanes = IrScope::current().lanes;
  Value* rounded = ir().CreateFPTrunc(fenced(x), lanes_of(ir().getHalfTy(), lanes));
  return ir().CreateBitCast(rounded, lanes_of(ir().getInt16Ty(), lanes));
}

// --- bfloat16

Value* from_bfloat16(Value* x) {
  return from_bits_of<Floats>(zero_extended(x) << 16).v;
}

Value* to_bfloat16(Value* x) {
  const Words bits = to_bits(Floats::of(x));
  const Words rounded = (bits + Words(0x7fffu) + ((bits >> 16) & Words(1u))) >> 16;
  const Words nan = (bits >> 16) | Words(0x40u);
  return low_half(select((bits & Words(~kSignBit)) > Words(kFloatInfinity), nan, rounded));
}

}  // namespace

// The fence keeps LLVM from comparing in the narrower type, where a selection by that comparison loses the sign of -0.
Value* extend(Value* x, llvm::Type* to) {
  return fenced(ir().CreateFPExt(x, to));
}

Value* widen(ElementType type, Value* x) {
  if (!is_narrow(type)) return x;
  if (type == ElementType::kFloat16) return from_half(x);
  if (type == ElementType::kBfloat16) return from_bfloat16(x);
  return ir().CreateIntCast(x, lanes_type<uint32_t>(), is_signed_integer(type));
}

Value* narrow(ElementType type, Value* x) {
  if (!is_narrow(type)) return x;
  if (type == ElementType::kFloat16) return to_half(x);
  if (type == ElementType::kBfloat16) return to_bfloat16(x);
  return ir().CreateTrunc(
      x, lanes_of(ir().getIntNTy(8 * static_cast<unsigned>(byte_width(type))), IrScope::current().lanes));
}

Value* to_float_odd(Value* x) {
  using Doubles = IrLanes<double>;
  const Doubles value = Doubles::of(x);
  const Floats nearest = Floats::of(ir().CreateFPTrunc(x, lanes_type<float>()));
  const Doubles back = Doubles::of(ir().CreateFPExt(nearest.v, lanes_type<double>()));
  const IrMask inexact = (back != value) & (value == value);
  auto magnitude = [](Doubles d) { return Doubles::of(ir().CreateUnaryIntrinsic(llvm::Intrinsic::fabs, d.v)); };
  const IrMask away = inexact & (magnitude(back) > magnitude(value));
  const Words bits = to_bits(nearest) - select(away, Words(1u), Words(0u));
  return from_bits_of<Floats>(bits | select(inexact, Words(1u), Words(0u))).v;
}

}  // namespace treadle::jit
