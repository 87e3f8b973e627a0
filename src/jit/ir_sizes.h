#pragma once
// Sizes as values in IR, for the rules of op/size_rules.h. Each condition of a rule becomes a check in the code;
// `fits()` is true if all of them hold.

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace treadle::jit {

class IrSizes {
 public:
  using Size = llvm::Value*;
  using List = std::vector<Size>;
  using Truth = llvm::Value*;
  static constexpr bool kSymbolic = false;

  explicit IrSizes(llvm::IRBuilder<>& builder) : b_(builder), fits_(builder.getTrue()) {}

  Truth fits() const { return fits_; }
  void check(Truth truth) { fits_ = both(fits_, truth); }
  // The representative of sizes that were checked to be equal.
  Size representative(Size size) const;

  Size number(int64_t n) const { return b_.getInt64(static_cast<uint64_t>(n)); }
  Size unknown() const { return number(0); }  // never occurs
  Size add(Size a, Size b) { return is_number(a, 0) ? b : is_number(b, 0) ? a : b_.CreateAdd(a, b); }
  Size sub(Size a, Size b) { return is_number(b, 0) ? a : b_.CreateSub(a, b); }
  Size mul(Size a, Size b) { return is_number(a, 1) ? b : is_number(b, 1) ? a : b_.CreateMul(a, b); }
  Size floor_div(Size a, Size b) { return is_number(b, 1) ? a : b_.CreateUDiv(a, b); }  // sizes are not negative
  Size ceil_div(Size a, Size b) { return floor_div(add(a, sub(b, number(1))), b); }
  Size min(Size a, Size b) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b); }
  Size max(Size a, Size b) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b); }
  Size select(Truth truth, Size yes, Size no);
  Size from_front(Size bound, Size size) { return select(b_.CreateICmpSLT(bound, number(0)), add(bound, size), bound); }
  // A number that a model states as a size may be any: checks that it is at most kLargest.
  Size stated(Size size) { return check(b_.CreateICmpSLE(size, number(kLargest))), size; }
  // Checks that the product is at most kLargest, and so that it does not overflow: the engine computes longer values.
  Size count(const List& sizes);
  std::pair<Size, Size> counts(const List& in, const List& sizes, std::span<const Truth> is_rest);

  Truth never() const { return b_.getFalse(); }
  static bool is_never(Truth truth) { return is_number(truth, 0); }
  static bool is_certainly(Size a, int64_t n) { return is_number(a, n); }
  Truth is(Size a, int64_t n) { return equal(a, number(n)); }
  Truth is_at_least(Size a, int64_t n) { return b_.CreateICmpSGE(a, number(n)); }
  Truth equal(Size a, Size b) { return a == b ? b_.getTrue() : b_.CreateICmpEQ(a, b); }
  Truth negated(Truth truth) { return b_.CreateNot(truth); }
  Truth both(Truth a, Truth b);

  template <class Message>
  bool require(Truth truth, const Message&) {
    return check(truth), true;
  }
  template <class Message>
  bool share(Size& a, Size b, const Message&) {
    return unify(a, b), true;
  }
  template <class Message>
  bool append(Size& to, Size more, const Message&) {
    return to = add(to, more), true;
  }
  static std::string text(Size) { return {}; }  // the engine reports the error
  static std::string text(const List&) { return {}; }

  static bool is_number(const llvm::Value* v, int64_t n);

 private:
  static constexpr int64_t kLargest = 1 << 16;  // as DynamicCall::kMostBytes

  bool is_always(Truth truth) const { return truth == b_.getTrue(); }
  void unify(Size a, Size b);

  llvm::IRBuilder<>& b_;
  Truth fits_;
  llvm::DenseMap<Size, Size> unified_;
};

}  // namespace treadle::jit
