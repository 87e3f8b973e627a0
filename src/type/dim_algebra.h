#pragma once
// Expressions behind the Dims of type/dim.cc. Only src/type/ uses them.
//
// Expressions are polynomials with integer coefficients over atoms. An atom is a symbol or an irreducible operation
// (floor division, modulo, minimum, maximum, reciprocal) on expressions. Monomials are sorted by their text. Equal
// polynomials thus have equal text, and equality is a comparison of strings. ceil_div(a, b) is floor_div(a + b - 1, b),
// so it needs no atom of its own.

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
  Dim a, b;  // operands, unless it is a symbol; a fraction is 1 / b
};
using AtomRef = std::shared_ptr<const Atom>;

struct Monomial {
  int64_t coefficient;
  std::vector<AtomRef> atoms;  // sorted by text; empty for the constant
  std::string text;            // product of the atoms, without the coefficient
};

struct DimExpr {
  // 0: never freed, and not counted.
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
  // An expression with more terms becomes unknown.
  static constexpr size_t kMaxTerms = 64;
  using Terms = std::vector<Monomial>;

  static Terms terms(const Dim& d) {
    if (d.is_known()) return d.value() ? Terms{{d.value(), {}, ""}} : Terms{};
    return d.expr_->terms;
  }

  // The expression in canonical form; a number if it is one.
  static Dim make(Terms terms);
  static std::string print(const Terms& terms);

  // With one reference, which the caller takes over.
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

  // For sizes that are not unknown. The result is unknown if it overflows.
  static Dim scale_add(const Dim& a, const Dim& b, int64_t sign);  // a + sign * b
  static Dim multiply(const Dim& a, const Dim& b);
  // Cancels fractions against the atoms that they divide, and merges numeric fractions into one. False if a number
  // overflows.
  static bool cancel(Monomial& m);

  static bool is_number(const Atom& atom) { return atom.kind == Atom::Kind::kFraction && atom.b.is_known(); }
  static AtomRef fraction(const Dim& divisor) {
    return std::make_shared<const Atom>(Atom{Atom::Kind::kFraction, "1/(" + divisor.to_string() + ")", {}, divisor});
  }

  // The position of `d` among the atoms of a product.
  static constexpr size_t kNone = ~size_t{0};
  static size_t index_of(const Dim& d, const Monomial& product);

  static bool has_fraction(const Monomial& m) {
    return std::ranges::any_of(m.atoms, [](const AtomRef& f) { return f->kind == Atom::Kind::kFraction; });
  }

  // Writes `d` as a quotient: the least number that all fractions divide, and at most one size by which all terms are
  // divided.
  static std::optional<std::pair<Dim, Dim>> as_quotient(const Dim& d);
  static constexpr int64_t kMaxDenominator = int64_t{1} << 20;

  static std::string product_text(const std::vector<AtomRef>& atoms) {
    std::string text;
    for (const AtomRef& f : atoms) text += (text.empty() ? "" : "*") + factor_text(*f);
    return text;
  }

  // A name from a file may read like an expression. Such a name is put in parentheses.
  static std::string factor_text(const Atom& atom) {
    const bool composite = atom.kind == Atom::Kind::kSymbol && atom.text.find_first_of("+-*") != std::string::npos;
    return composite ? "(" + atom.text + ")" : atom.text;
  }

  // The quotient if `divisor` divides every coefficient of `a`.
  static std::optional<Dim> exact_quotient(const Dim& a, int64_t divisor);

  // The least value; nullopt if unknown.
  static std::optional<int64_t> lower_bound(const Atom& atom);
  // At most so many atoms are replaced by their bounds.
  static constexpr int kMaxBoundSteps = 4;

  static std::optional<int64_t> lower_bound(const Dim& d, int steps);
  // A lower bound of `d` after replacing its term `m` = k * atom by a term that is not greater and lacks the atom.
  static std::optional<int64_t> lower_bound_without(const Dim& d, const Monomial& m, int steps);
  static std::optional<int64_t> lower_bound_by_terms(const DimExpr& expr);

  static bool same_text(const Dim& a, const Dim& b) { return a.expr_ == b.expr_ || a.expr_->text == b.expr_->text; }
  static const DimExpr& expr(const Dim& d) { return *d.expr_; }
};

}  // namespace treadle
