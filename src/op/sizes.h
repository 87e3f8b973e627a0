#pragma once
// What size rules (op/size_rules.h) compute with where sizes are numbers, and where they may be symbols.

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "type/shape.h"

namespace treadle {

// Whole numbers of a type that is wide enough for a rule's sums and products. One that overflows fits no demand.
template <class Int>
class WholeSizes {
 public:
  using Size = Int;
  using List = InlineVector<Int, 6>;
  using Truth = bool;
  static constexpr bool kSymbolic = false;

  static Size number(int64_t n) { return n; }
  static Size unknown() { return 0; }  // there is none
  Size add(Size a, Size b) { return overflows_ |= __builtin_add_overflow(a, b, &a), a; }
  Size sub(Size a, Size b) { return overflows_ |= __builtin_sub_overflow(a, b, &a), a; }
  Size mul(Size a, Size b) { return overflows_ |= __builtin_mul_overflow(a, b, &a), a; }
  static Size floor_div(Size a, Size b) { return a / b; }  // of sizes
  static Size ceil_div(Size a, Size b) { return a > 0 ? (a - 1) / b + 1 : 0; }
  static Size min(Size a, Size b) { return a < b ? a : b; }
  static Size max(Size a, Size b) { return a < b ? b : a; }
  static Size select(Truth truth, Size yes, Size no) { return truth ? yes : no; }
  static Size from_front(Size bound, Size size) { return bound < 0 ? bound + size : bound; }
  static Size stated(Size size) { return size; }
  Size count(const List& sizes) {
    Size product = 1;
    for (const Size size : sizes) product = mul(product, size);
    return product;
  }
  // The products of both; of `sizes` without those that `is_rest`.
  std::pair<Size, Size> counts(const List& in, const List& sizes, std::span<const bool> is_rest) {
    Size product = 1;
    for (size_t d = 0; d < sizes.size(); ++d) product = is_rest[d] ? product : mul(product, sizes[d]);
    return {count(in), product};
  }

  static Truth never() { return false; }
  static bool is_never(Truth truth) { return !truth; }
  static bool is_certainly(Size a, int64_t n) { return a == n; }
  static Truth is(Size a, int64_t n) { return a == n; }
  static Truth is_at_least(Size a, int64_t n) { return a >= n; }
  static Truth equal(Size a, Size b) { return a == b; }
  static Truth negated(Truth truth) { return !truth; }
  static Truth both(Truth a, Truth b) { return a && b; }

  template <class Message>
  bool require(Truth truth, const Message&) const {
    return truth && !overflows_;
  }
  template <class Message>
  bool share(Size& a, Size b, const Message&) const {
    return a == b;
  }
  template <class Message>
  bool append(Size& to, Size more, const Message&) {
    return to = add(to, more), !overflows_;
  }
  static std::string text(Size size) { return std::to_string(static_cast<int64_t>(size)); }
  static std::string text(const List&) { return {}; }

 private:
  bool overflows_ = false;
};

using NumberSizes = WholeSizes<int64_t>;

// Sizes as inference knows them. What may hold counts as holding: `require` fails with what is known to be wrong.
class DimSizes {
 public:
  using Size = Dim;
  using List = Shape;
  using Truth = bool;
  static constexpr bool kSymbolic = true;

  // Why a rule said false. To be called once.
  Status status() { return std::move(status_); }

  static Dim number(int64_t n) { return n; }
  static Dim unknown() { return {}; }
  static Dim add(const Dim& a, const Dim& b) { return a + b; }
  static Dim sub(const Dim& a, const Dim& b) { return a - b; }
  static Dim mul(const Dim& a, const Dim& b) { return a * b; }
  static Dim floor_div(const Dim& a, const Dim& b) { return treadle::floor_div(a, b); }
  static Dim ceil_div(const Dim& a, const Dim& b) { return treadle::ceil_div(a, b); }
  static Dim min(const Dim& a, const Dim& b);
  static Dim max(const Dim& a, const Dim& b);
  static Dim select(Truth truth, const Dim& yes, const Dim& no) { return truth ? yes : no; }
  static Dim from_front(const Dim& bound, const Dim& size);
  // A size that a model states: unknown where it may turn out to be -1.
  static Dim stated(const Dim& size) { return size.lower_bound().value_or(-1) < 0 ? Dim() : size; }
  static Dim count(const Shape& sizes) { return element_count(sizes); }
  // The products of both, without sizes that both have: symbols need no division then.
  static std::pair<Dim, Dim> counts(const Shape& in, const Shape& sizes, std::span<const bool> is_rest);

  // The elements that Slice takes, where the general rule says it in more words or not at all; nullopt elsewhere.
  static std::optional<Dim> simple_slice(const Dim& size, const Dim& start, const Dim& end, int64_t step);
  // The only unknown size follows from the others and from the number of elements.
  static void deduce_unknown(const Shape& in, Shape& sizes);

  static Truth never() { return false; }
  static bool is_never(Truth truth) { return !truth; }
  static bool is_certainly(const Dim& a, int64_t n) { return a.is_known(n); }
  static Truth is(const Dim& a, int64_t n) { return a.is_known(n); }
  static Truth is_at_least(const Dim& a, int64_t n) { return !a.is_known() || a.value() >= n; }
  static Truth equal(const Dim& a, const Dim& b) { return !a.is_known() || !b.is_known() || a.value() == b.value(); }
  static Truth negated(Truth truth) { return !truth; }
  static Truth both(Truth a, Truth b) { return a && b; }

  template <class Message>
  bool require(Truth truth, const Message& message) {
    if (!truth) status_ = message();
    return truth;
  }
  template <class Message>
  bool share(Dim& a, const Dim& b, const Message& message) {
    if (!require(equal(a, b), message)) return false;
    if (b.is_known() || (a.is_unknown() && !b.is_unknown())) a = b;
    return true;
  }
  template <class Message>
  bool append(Dim& to, const Dim& more, const Message& message) {
    const bool known = to.is_known() && more.is_known();
    to = some_size(to) + some_size(more);
    return require(!known || to.is_known(), message);
  }
  static std::string text(const Dim& size) { return size.to_string(); }
  static std::string text(const Shape& sizes) { return to_string(sizes); }

 private:
  // Something that no rule knows the size of still has one.
  static Dim some_size(const Dim& d) { return d.lower_bound() ? d : Dim::at_least(0); }

  Status status_;
};

}  // namespace treadle
