#include "jit/ir_sizes.h"

namespace treadle::jit {

bool IrSizes::is_number(const llvm::Value* v, int64_t n) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(v);
  return constant && constant->getSExtValue() == n;
}

IrSizes::Size IrSizes::representative(Size size) const {
  for (auto it = unified_.find(size); it != unified_.end(); it = unified_.find(size)) size = it->second;
  return size;
}

IrSizes::Size IrSizes::select(Truth truth, Size yes, Size no) {
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(truth)) return constant->isZero() ? no : yes;
  return yes == no ? yes : b_.CreateSelect(truth, yes, no);
}

IrSizes::Truth IrSizes::both(Truth a, Truth b) {
  if (is_always(a) || is_never(b)) return b;
  return is_always(b) || is_never(a) ? a : b_.CreateAnd(a, b);
}

IrSizes::Size IrSizes::count(const List& sizes) {
  Size product = number(1);
  for (Size size : sizes) {
    product = mul(product, size);
    if (product != size) check(b_.CreateICmpULE(product, number(kLargest)));
  }
  return product;
}

std::pair<IrSizes::Size, IrSizes::Size> IrSizes::counts(const List& in, const List& sizes,
                                                        std::span<const Truth> is_rest) {
  List others = sizes;
  for (size_t d = 0; d < others.size(); ++d) others[d] = select(is_rest[d], number(1), others[d]);
  return {count(in), count(others)};
}

void IrSizes::unify(Size a, Size b) {
  Size x = representative(a), y = representative(b);
  if (x == y) return;
  check(equal(a, b));
  unified_[y] = x;
}

}  // namespace treadle::jit
