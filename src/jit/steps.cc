#include "jit/steps.h"

#include <optional>

#include "jit/narrow_lanes.h"
#include "kernels/error.h"
#include "kernels/written_operations.h"

namespace treadle::jit {

namespace {

using kernels::ElementwiseOp;
using Step = plan::ElementwiseCode::Step;
using llvm::Value;

thread_local IrScope* current_scope = nullptr;

Value* bytes_of(IrMask mask) {
  return ir().CreateZExt(mask.v, lanes_type<uint8_t>());
}
template <class T>
Value* bytes_of(IrLanes<T> lanes) {
  return lanes.v;
}

// The operation by its definition; null if the definition calls the C library or checks integers.
template <class Op, class T, int kInputs>
Value* by_definition(const Step& step, llvm::ArrayRef<Value*> a) {
  using V = IrLanes<T>;
  if constexpr (!kernels::can_be_written<Op, T>()) {
    return nullptr;
  } else if constexpr (kInputs == 1) {
    if constexpr (requires(V v) { Op::eval(v); }) {
      return bytes_of(Op::eval(V::of(a[0])));
    } else if constexpr (std::is_floating_point_v<T>) {
      const kernels::functions::Params<V> params{V(static_cast<T>(step.params.alpha)),
                                                 V(static_cast<T>(step.params.beta))};
      return bytes_of(Op::eval(V::of(a[0]), params));
    } else {
      return nullptr;
    }
  } else if constexpr (kInputs == 2) {
    return bytes_of(Op::eval(V::of(a[0]), V::of(a[1])));
  } else {
    return bytes_of(Op::eval(V::of(a[0]), V::of(a[1]), V::of(a[2])));
  }
}

Value* by_definition(const Step& step, llvm::ArrayRef<Value*> a) {
  Value* result = nullptr;
  kernels::with_written_type(step.from, [&](auto zero) {
    using T = decltype(zero);
    kernels::with_definition<T>(step.op, [&](auto definition, auto inputs) {
      result = by_definition<decltype(definition), T, inputs.value>(step, a);
    });
  });
  return result;
}

// --- integers ---

bool is_checked_integer(ElementType type) {
  return type == ElementType::kInt32 || type == ElementType::kInt64 || type == ElementType::kUint32 ||
         type == ElementType::kUint64;
}

Value* any_lane(Value* mask) {
  return mask->getType()->isVectorTy() ? ir().CreateOrReduce(mask) : mask;
}

// Division and remainders: checks the divisor, and treats -1 separately, since the lowest number divided by it
// overflows.
Value* divide(const Step& step, Value* a, Value* b, StepHost& host) {
  llvm::Type* type = a->getType();
  Value* zero = llvm::ConstantInt::get(type, 0);
  Value* one = llvm::ConstantInt::get(type, 1);
  host.fail_if(any_lane(ir().CreateICmpEQ(b, zero)), kernels::kDivisionByZero);
  if (!is_signed_integer(step.from)) {
    return step.op == ElementwiseOp::kDiv ? ir().CreateUDiv(a, b) : ir().CreateURem(a, b);
  }
  Value* minus_one = ir().CreateICmpEQ(b, llvm::ConstantInt::getAllOnesValue(type));
  Value* divisor = ir().CreateSelect(minus_one, one, b);
  if (step.op == ElementwiseOp::kDiv) {
    return ir().CreateSelect(minus_one, ir().CreateNeg(a), ir().CreateSDiv(a, divisor));
  }
  Value* rest = ir().CreateSRem(a, divisor);
  if (step.op == ElementwiseOp::kFmod) return rest;
  Value* unlike = ir().CreateICmpSLT(ir().CreateXor(rest, b), zero);
  Value* wraps = ir().CreateAnd(ir().CreateICmpNE(rest, zero), unlike);
  return ir().CreateSelect(wraps, ir().CreateAdd(rest, b), rest);
}

Value* shift(const Step& step, Value* a, Value* b) {
  llvm::Type* type = a->getType();
  const unsigned width = type->getScalarSizeInBits();
  Value* in_range = ir().CreateICmpULT(b, llvm::ConstantInt::get(type, width));
  Value* zero = llvm::ConstantInt::get(type, 0);
  if (step.op == ElementwiseOp::kShiftRight && is_signed_integer(step.from)) {
    return ir().CreateAShr(a, ir().CreateSelect(in_range, b, llvm::ConstantInt::get(type, width - 1)));
  }
  Value* count = ir().CreateSelect(in_range, b, zero);
  Value* shifted = step.op == ElementwiseOp::kShiftLeft ? ir().CreateShl(a, count) : ir().CreateLShr(a, count);
  return ir().CreateSelect(in_range, shifted, zero);
}

// --- calls of row functions ---

// Calls the kernels' row function over the lanes, through memory.
Value* by_row(const Step& step, llvm::ArrayRef<Value*> a, StepHost& host) {
  auto& b = ir();
  llvm::LLVMContext& context = b.getContext();
  const unsigned lanes = IrScope::current().lanes;
  auto spill = [&](Value* value) {
    Value* memory = host.stack(size_t{64} * 8);
    b.CreateAlignedStore(value, memory, llvm::Align(1));
    return memory;
  };
  Value* first = spill(a[0]);
  Value* second = a.size() > 1 ? spill(a[1]) : first;
  Value* out = host.stack(size_t{64} * 8);
  Value* params = host.stack(sizeof(kernels::ElementwiseParams));
  b.CreateStore(llvm::ConstantFP::get(b.getDoubleTy(), step.params.alpha), params);
  b.CreateStore(llvm::ConstantFP::get(b.getDoubleTy(), step.params.beta),
                b.CreateConstGEP1_64(b.getInt8Ty(), params, offsetof(kernels::ElementwiseParams, beta)));
  auto* type = llvm::FunctionType::get(b.getInt32Ty(),
                                       {b.getPtrTy(), b.getPtrTy(), b.getPtrTy(), b.getInt64Ty(), b.getPtrTy()}, false);
  b.CreateCall(type, host.row_function(step.op, step.from), {first, second, out, b.getInt64(lanes), params});
  llvm::Type* result = lanes_of(element_ir_type(context, step.to), lanes);
  return b.CreateAlignedLoad(result, out, llvm::Align(1));
}

// sin, cos and tan of moderate arguments take a few instructions; larger arguments go through the row function.
Value* trigonometric(const Step& step, Value* a, StepHost& host) {
  using V = IrLanes<float>;
  auto& b = ir();
  const V x = V::of(a);
  const V zero(0.0f);
  using C = kernels::math::Coefficients<float>;
  const float limit = step.op == ElementwiseOp::kTan ? C::kTanLimit : C::kTurnLimit;
  V y = step.op == ElementwiseOp::kTan ? kernels::math::tan_float(x)
                                       : kernels::math::sin_float(x, step.op == ElementwiseOp::kCos ? 1 : 0);
  if (step.op != ElementwiseOp::kCos) y = select(x == zero, x, y);
  const IrMask far = !(kernels::math::absolute(x) <= V(limit));
  llvm::Function* function = b.GetInsertBlock()->getParent();
  auto* here = b.GetInsertBlock();
  auto* slow = llvm::BasicBlock::Create(b.getContext(), "far", function);
  auto* next = llvm::BasicBlock::Create(b.getContext(), "turned", function);
  b.CreateCondBr(any_lane(far.v), slow, next);
  b.SetInsertPoint(slow);
  Value* called = by_row(step, {a}, host);
  slow = b.GetInsertBlock();
  b.CreateBr(next);
  b.SetInsertPoint(next);
  auto* result = b.CreatePHI(a->getType(), 2);
  result->addIncoming(y.v, here);
  result->addIncoming(called, slow);
  return result;
}

// --- conversions, as in kernels/convert.h ---

Value* truncate(Value* x, unsigned bits) {
  auto& b = ir();
  llvm::Type* to = lanes_of(b.getIntNTy(bits), IrScope::current().lanes);
  const double high = bits == 32 ? 0x1p31 : 0x1p63;
  Value* fits = b.CreateAnd(b.CreateFCmpOGE(x, llvm::ConstantFP::get(x->getType(), -high)),
                            b.CreateFCmpOLT(x, llvm::ConstantFP::get(x->getType(), high)));
  Value* safe = b.CreateSelect(fits, x, llvm::ConstantFP::get(x->getType(), 0));
  return b.CreateSelect(fits, b.CreateFPToSI(safe, to),
                        llvm::ConstantInt::get(to, llvm::APInt::getSignedMinValue(bits)));
}

Value* float_to_uint64(Value* x) {
  auto& b = ir();
  auto constant = [&](double value) { return llvm::ConstantFP::get(x->getType(), value); };
  Value* upper = b.CreateFCmpOGE(x, constant(0x1p63));
  Value* low = truncate(b.CreateSelect(upper, b.CreateFSub(x, constant(0x1p63)), x), 64);
  Value* flips = b.CreateAnd(upper, b.CreateFCmpOLT(x, constant(0x1p64)));
  Value* top = llvm::ConstantInt::get(low->getType(), uint64_t{1} << 63);
  return b.CreateXor(low, b.CreateSelect(flips, top, llvm::ConstantInt::get(low->getType(), 0)));
}

// Conversions between types that are stored in their compute type.
Value* convert_wide(const Step& step, Value* x) {
  auto& b = ir();
  llvm::Type* to = lanes_of(element_ir_type(b.getContext(), step.to), IrScope::current().lanes);
  const bool from_float = x->getType()->isFPOrFPVectorTy();
  if (step.from == ElementType::kBool) {
    x = b.CreateICmpNE(x, llvm::ConstantInt::get(x->getType(), 0));
    if (step.to == ElementType::kBool) return b.CreateZExt(x, to);
    return to->isFPOrFPVectorTy() ? b.CreateUIToFP(x, to) : b.CreateZExt(x, to);
  }
  if (step.to == ElementType::kBool) {
    Value* zero = llvm::Constant::getNullValue(x->getType());
    return b.CreateZExt(from_float ? b.CreateFCmpUNE(x, zero) : b.CreateICmpNE(x, zero), to);
  }
  if (from_float) {
    switch (step.to) {
      case ElementType::kInt32:
        return truncate(x, 32);
      case ElementType::kInt64:
        return truncate(x, 64);
      case ElementType::kUint32:
        return b.CreateTrunc(truncate(x, 64), to);
      case ElementType::kUint64:
        return float_to_uint64(x);
      case ElementType::kDouble:
        return extend(x, to);
      default:
        return b.CreateFPTrunc(x, to);
    }
  }
  if (to->isFPOrFPVectorTy()) return is_signed_integer(step.from) ? b.CreateSIToFP(x, to) : b.CreateUIToFP(x, to);
  return b.CreateIntCast(x, to, is_signed_integer(step.from));
}

Value* convert(const Step& step, Value* x) {
  if (step.from == step.to) return x;
  Step wide = step;
  wide.from = wide_type(step.from);
  wide.to = wide_type(step.to);
  x = widen(step.from, x);
  if (wide.from == ElementType::kDouble && is_narrow(step.to) && is_float(step.to)) {
    x = to_float_odd(x);
  } else if (wide.from != wide.to) {
    x = convert_wide(wide, x);
  }
  return narrow(step.to, x);
}

Value* where(llvm::ArrayRef<Value*> a) {
  auto& b = ir();
  return b.CreateSelect(b.CreateICmpNE(a[0], llvm::ConstantInt::get(a[0]->getType(), 0)), a[1], a[2]);
}

}  // namespace

IrScope::IrScope(llvm::IRBuilder<>& b, unsigned n, Isa isa)
    : builder(b),
      lanes(n),
      fused_multiply_add(isa != Isa::kBaseline),
      converts_halves(isa != Isa::kBaseline),
      outer(current_scope) {
  current_scope = this;
}
IrScope::~IrScope() {
  current_scope = outer;
}
IrScope& IrScope::current() {
  return *current_scope;
}

llvm::Type* element_ir_type(llvm::LLVMContext& context, ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return llvm::Type::getFloatTy(context);
    case ElementType::kDouble:
      return llvm::Type::getDoubleTy(context);
    case ElementType::kInt32:
    case ElementType::kUint32:
      return llvm::Type::getInt32Ty(context);
    case ElementType::kInt64:
    case ElementType::kUint64:
      return llvm::Type::getInt64Ty(context);
    case ElementType::kBool:
    case ElementType::kInt8:
    case ElementType::kUint8:
      return llvm::Type::getInt8Ty(context);
    case ElementType::kInt16:
    case ElementType::kUint16:
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return llvm::Type::getInt16Ty(context);
    default:
      return nullptr;
  }
}

bool supports_step(const Step& step) {
  return plan::is_native(step.from) && plan::is_native(step.to);
}

namespace {

// An operation on a type that is stored in its compute type.
Value* write_operation(const Step& step, llvm::ArrayRef<Value*> a, StepHost& host) {
  switch (step.op) {
    case ElementwiseOp::kSin:
    case ElementwiseOp::kCos:
    case ElementwiseOp::kTan:
      if (step.from == ElementType::kFloat) return trigonometric(step, a[0], host);
      break;
    case ElementwiseOp::kDiv:
    case ElementwiseOp::kMod:
    case ElementwiseOp::kFmod:
      if (is_checked_integer(step.from)) return divide(step, a[0], a[1], host);
      break;
    case ElementwiseOp::kShiftLeft:
    case ElementwiseOp::kShiftRight:
      return shift(step, a[0], a[1]);
    default:
      break;
  }
  if (Value* result = by_definition(step, a)) return result;
  return by_row(step, a, host);
}

}  // namespace

Value* write_step(const Step& step, llvm::ArrayRef<Value*> a, StepHost& host) {
  if (step.converts) return convert(step, a[0]);
  if (step.op == ElementwiseOp::kWhere) return where(a);
  Step wide = step;
  wide.from = wide_type(step.from);
  wide.to = wide_type(step.to);
  llvm::SmallVector<Value*, 3> widened;
  for (Value* argument : a) widened.push_back(widen(step.from, argument));
  return narrow(step.to, write_operation(wide, widened, host));
}

}  // namespace treadle::jit
