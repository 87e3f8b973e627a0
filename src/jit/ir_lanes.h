#pragma once
// A value type for kernels/elementwise_functions.h whose operations write LLVM IR. The definitions from which kernels
// are compiled thus become native code, so both do the same operations in the same order.
//
// A lane count of 1 is a scalar; any other is a vector. Lane count and builder come from the thread's IrScope.

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <cstdint>
#include <type_traits>

#include "base/cpu.h"

namespace treadle::jit {

struct IrScope {
  llvm::IRBuilder<>& builder;
  unsigned lanes;
  // Whether a * b + c rounds once, as in the kernels of the same instruction set.
  bool fused_multiply_add;
  // Whether the processor has instructions that convert float16.
  bool converts_halves;
  IrScope* outer;

  IrScope(llvm::IRBuilder<>& b, unsigned n, Isa isa);
  ~IrScope();
  IrScope(const IrScope&) = delete;
  static IrScope& current();
};

inline llvm::IRBuilder<>& ir() {
  return IrScope::current().builder;
}

template <class T>
llvm::Type* scalar_type() {
  if constexpr (std::is_same_v<T, float>) return ir().getFloatTy();
  if constexpr (std::is_same_v<T, double>) return ir().getDoubleTy();
  return ir().getIntNTy(8 * sizeof(T));
}

inline llvm::Type* lanes_of(llvm::Type* scalar, unsigned lanes) {
  return lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, lanes);
}

template <class T>
llvm::Type* lanes_type() {
  return lanes_of(scalar_type<T>(), IrScope::current().lanes);
}

struct IrMask {
  llvm::Value* v;
  friend IrMask operator&(IrMask a, IrMask b) { return {ir().CreateAnd(a.v, b.v)}; }
  friend IrMask operator|(IrMask a, IrMask b) { return {ir().CreateOr(a.v, b.v)}; }
  friend IrMask operator!(IrMask a) { return {ir().CreateNot(a.v)}; }
};

template <size_t kBytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = uint8_t;
};
template <>
struct UnsignedOf<4> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = uint64_t;
};

template <class T>
struct IrLanes {
  using Scalar = T;
  using Bits = IrLanes<typename UnsignedOf<sizeof(T)>::type>;
  static constexpr bool kFloat = std::is_floating_point_v<T>;
  static constexpr bool kSigned = std::is_signed_v<T>;
  llvm::Value* v = nullptr;

  IrLanes() = default;
  explicit IrLanes(T scalar) {
    if constexpr (kFloat) {
      v = llvm::ConstantFP::get(lanes_type<T>(), llvm::APFloat(scalar));
    } else {
      v = llvm::ConstantInt::get(lanes_type<T>(), static_cast<uint64_t>(scalar), kSigned);
    }
  }
  static IrLanes of(llvm::Value* value) {
    IrLanes x;
    x.v = value;
    return x;
  }

  friend IrLanes operator+(IrLanes a, IrLanes b) {
    return of(kFloat ? ir().CreateFAdd(a.v, b.v) : ir().CreateAdd(a.v, b.v));
  }
  friend IrLanes operator-(IrLanes a, IrLanes b) {
    return of(kFloat ? ir().CreateFSub(a.v, b.v) : ir().CreateSub(a.v, b.v));
  }
  friend IrLanes operator*(IrLanes a, IrLanes b) {
    return of(kFloat ? ir().CreateFMul(a.v, b.v) : ir().CreateMul(a.v, b.v));
  }
  friend IrLanes operator/(IrLanes a, IrLanes b) {
    static_assert(kFloat, "integer division checks its divisor");
    return of(ir().CreateFDiv(a.v, b.v));
  }
  friend IrLanes operator-(IrLanes a) { return of(kFloat ? ir().CreateFNeg(a.v) : ir().CreateNeg(a.v)); }
  friend IrLanes operator&(IrLanes a, IrLanes b) { return of(ir().CreateAnd(a.v, b.v)); }
  friend IrLanes operator|(IrLanes a, IrLanes b) { return of(ir().CreateOr(a.v, b.v)); }
  friend IrLanes operator^(IrLanes a, IrLanes b) { return of(ir().CreateXor(a.v, b.v)); }
  friend IrLanes operator~(IrLanes a) { return of(ir().CreateNot(a.v)); }
  friend IrLanes operator<<(IrLanes a, int count) { return of(ir().CreateShl(a.v, static_cast<uint64_t>(count))); }
  friend IrLanes operator>>(IrLanes a, int count) {
    const auto n = static_cast<uint64_t>(count);
    return of(kSigned ? ir().CreateAShr(a.v, n) : ir().CreateLShr(a.v, n));
  }

  friend IrMask operator<(IrLanes a, IrLanes b) { return a.compare(b, P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT); }
  friend IrMask operator>(IrLanes a, IrLanes b) { return a.compare(b, P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT); }
  friend IrMask operator<=(IrLanes a, IrLanes b) { return a.compare(b, P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE); }
  friend IrMask operator>=(IrLanes a, IrLanes b) { return a.compare(b, P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE); }
  friend IrMask operator==(IrLanes a, IrLanes b) { return a.compare(b, P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ); }
  friend IrMask operator!=(IrLanes a, IrLanes b) { return a.compare(b, P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE); }

 private:
  using P = llvm::CmpInst;
  IrMask compare(IrLanes b, P::Predicate real, P::Predicate with_sign, P::Predicate without) const {
    return {kFloat ? ir().CreateFCmp(real, v, b.v) : ir().CreateICmp(kSigned ? with_sign : without, v, b.v)};
  }
};

template <class T>
IrLanes<T> select(IrMask condition, IrLanes<T> yes, IrLanes<T> no) {
  return IrLanes<T>::of(ir().CreateSelect(condition.v, yes.v, no.v));
}

// Keeps a minimum or maximum one operation: merged with the selection around it, LLVM would make two comparisons.
template <class T>
IrLanes<T> picked(IrLanes<T> x) {
  if constexpr (!IrLanes<T>::kFloat) return x;
  return IrLanes<T>::of(ir().CreateIntrinsic(llvm::Intrinsic::arithmetic_fence, {x.v->getType()}, {x.v}));
}

template <class T>
auto to_bits(IrLanes<T> x) {
  using Bits = typename IrLanes<T>::Bits;
  return Bits::of(ir().CreateBitCast(x.v, lanes_type<typename Bits::Scalar>()));
}

template <class V, class B>
V from_bits_of(IrLanes<B> bits) {
  return V::of(ir().CreateBitCast(bits.v, lanes_type<typename V::Scalar>()));
}

template <class T>
IrLanes<T> multiply_add(IrLanes<T> a, IrLanes<T> b, IrLanes<T> c) {
  if (!IrScope::current().fused_multiply_add) return a * b + c;
  return IrLanes<T>::of(ir().CreateIntrinsic(llvm::Intrinsic::fma, {a.v->getType()}, {a.v, b.v, c.v}));
}

#define TREADLE_IR_LANE_FUNCTION(name, intrinsic)                                      \
  template <class T>                                                                   \
  IrLanes<T> name(IrLanes<T> x) {                                                      \
    return IrLanes<T>::of(ir().CreateUnaryIntrinsic(llvm::Intrinsic::intrinsic, x.v)); \
  }
TREADLE_IR_LANE_FUNCTION(floor, floor)
TREADLE_IR_LANE_FUNCTION(ceil, ceil)
TREADLE_IR_LANE_FUNCTION(round_even, rint)
TREADLE_IR_LANE_FUNCTION(sqrt, sqrt)
#undef TREADLE_IR_LANE_FUNCTION

}  // namespace treadle::jit
