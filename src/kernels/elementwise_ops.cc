#include "kernels/elementwise_ops.h"

namespace treadle::kernels {

namespace {

enum : bool { kSame = false, kBool = true };
enum : bool { kTotal = false, kCanFail = true };

constexpr ElementwiseOpInfo kOps[] = {
#define X(enumerator, inputs, domain, result, effect, price, grouping) \
  {#enumerator, inputs, OpDomain::k##domain, k##result, k##effect, Price::k##price, Grouping::k##grouping},
    TREADLE_ELEMENTWISE_OPS(X)
#undef X
};

}  // namespace

const ElementwiseOpInfo& info(ElementwiseOp op) {
  return kOps[static_cast<int>(op)];
}

bool is_associative(ElementwiseOp op, ElementType type) {
  const Grouping grouping = info(op).grouping;
  return grouping == Grouping::kOrdered || (grouping == Grouping::kIntegers && !is_float(type));
}

bool is_commutative(ElementwiseOp op, ElementType type) {
  return is_associative(op, type) && !is_float(type);
}

bool has_rows(ElementwiseOp op, ComputeType type) {
  if (op == ElementwiseOp::kWhere) return true;
  const bool is_float = type == ComputeType::kF32 || type == ComputeType::kF64;
  const bool is_bool = type == ComputeType::kBool;
  if (type == ComputeType::kNone) return false;
  switch (info(op).domain) {
    case OpDomain::kFloat:
      return is_float;
    case OpDomain::kNumber:
      return !is_bool;
    case OpDomain::kInteger:
      return !is_float && !is_bool;
    case OpDomain::kBool:
      return is_bool;
    case OpDomain::kAny:
      return true;
  }
  return false;
}

}  // namespace treadle::kernels
