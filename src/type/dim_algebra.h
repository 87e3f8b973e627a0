#pragma once
// What type/dim.cc makes sizes of that are no numbers; nobody outside of type/ looks into them.
//
// Expressions are polynomials with integer coefficients over atoms. An atom is a symbol or an irreducible operation
// (floor division, modulo, minimum, maximum, one over something) on expressions. Monomials are kept sorted by their
// text, so two equal polynomials have equal text and equality is a string comparison. ceil_div(a, b) is floor_div(a + b
// - 1, b) and thus needs no atom of its own.

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "type/dim.h"

namespace treadle {

namespace detail {

struct Atom {
  enum class Kind : uint8_t { kSymbol, kFloorDiv, kMod, kMin, kMax, kFraction };
  Kind kind;
  std::string text;
  Dim a, b;  // operands of what is not a symbol; a fraction is 1 / b
};
using AtomRef = std::shared_ptr<const Atom>;

struct Monomial {
  int64_t coefficient;
  std::vector<AtomRef> atoms;  // sorted by text; empty for the constant
  std::string text;            // product of the atoms, without the coefficient
};

struct DimExpr {
  // 0: lives for ever, and nobody counts.
  mutable std::atomic<uint32_t> references{1};
  std::vector<Monomial> terms;  // sorted by text; the constant (text "") first
  std::string text;
};

}  // namespace detail

using detail::Atom;
using detail::AtomRef;
using detail::DimExpr;
using detail::Monomial;

struct DimAlgebra {
  // An expression that grows beyond this says nothing any more.
  static constexpr size_t kMaxTerms = 64;
  using Terms = std::vector<Monomial>;

  static Terms terms(const Dim& d) {
    if (d.is_known()) return d.value() ? Terms{{d.value(), {}, ""}} : Terms{};
    return d.expr_->terms;
  }

  // The expression in canonical form; a number where it is one.
  static Dim make(Terms terms);
  static std::string print(const Terms& terms);

  // With one reference, which is the caller's.
  static const DimExpr* new_symbol(std::string_view name) {
    Dim symbol = atom(Atom::Kind::kSymbol, std::string(name));
    symbol.kind_ = Dim::Kind::kUnknown;
    return symbol.expr_;
  }

  static Dim atom(Atom::Kind kind, std::string text, Dim a = {}, Dim b = {}) {
    auto ref = std::make_shared<const Atom>(Atom{kind, text, std::move(a), std::move(b)});
    return make({{1, {std::move(ref)}, std::move(text)}});
  }

  static Dim call(Atom::Kind kind, const char* function, const Dim& a, const Dim& b) {
    return atom(kind, std::string(function) + "(" + a.to_string() + "," + b.to_string() + ")", a, b);
  }

  // Of sizes that are not unknown; unknown where the result leaves the range.
  static Dim scale_add(const Dim& a, const Dim& b, int64_t sign);  // a + sign * b
  static Dim multiply(const Dim& a, const Dim& b);
  // Fractions against what they divide, and those that are numbers into one. False where that leaves the range.
  static bool cancel(Monomial& m);

  static bool is_number(const Atom& atom) { return atom.kind == Atom::Kind::kFraction && atom.b.is_known(); }
  static AtomRef fraction(const Dim& divisor) {
    return std::make_shared<const Atom>(Atom{Atom::Kind::kFraction, "1/(" + divisor.to_string() + ")", {}, divisor});
  }

  // Where the product has `d` as an atom.
  static constexpr size_t kNone = ~size_t{0};
  static size_t place_of(const Dim& d, const Monomial& product);

  static bool has_fraction(const Monomial& m) {
    return std::ranges::any_of(m.atoms, [](const AtomRef& f) { return f->kind == Atom::Kind::kFraction; });
  }

  // A quotient of integers: the least number that all fractions divide, and at most one size that all terms are divided
  // by.
  static std::optional<std::pair<Dim, Dim>> as_quotient(const Dim& d);
  static constexpr int64_t kMaxDenominator = int64_t{1} << 20;

  static std::string product_text(const std::vector<AtomRef>& atoms) {
    std::string text;
    for (const AtomRef& f : atoms) text += (text.empty() ? "" : "*") + factor_text(*f);
    return text;
  }

  // Names come from files. One that reads like an expression must not mix with what stands around it.
  static std::string factor_text(const Atom& atom) {
    const bool composite = atom.kind == Atom::Kind::kSymbol && atom.text.find_first_of("+-*") != std::string::npos;
    return composite ? "(" + atom.text + ")" : atom.text;
  }

  // The quotient, when `divisor` divides every coefficient of `a`.
  static std::optional<Dim> exact_quotient(const Dim& a, int64_t divisor);

  // What a value is at least; nullopt where nothing is known.
  static std::optional<int64_t> lower_bound(const Atom& atom);
  // At most this many atoms are replaced by what bounds them.
  static constexpr int kMaxBoundSteps = 4;

  static std::optional<int64_t> lower_bound(const Dim& d, int steps);
  // Lower bound of `d`, whose term `m` = k * atom is replaced by something that is not greater and has no such atom.
  static std::optional<int64_t> lower_bound_without(const Dim& d, const Monomial& m, int steps);
  static std::optional<int64_t> lower_bound_by_terms(const DimExpr& expr);

  static bool same_text(const Dim& a, const Dim& b) { return a.expr_ == b.expr_ || a.expr_->text == b.expr_->text; }
  static const DimExpr& expr(const Dim& d) { return *d.expr_; }
};

}  // namespace treadle
