// Expressions are polynomials with integer coefficients over atoms. An atom is a symbol or an irreducible operation
// (floor division, modulo, minimum, maximum, one over something) on expressions. Monomials are kept sorted by their
// text, so two equal polynomials have equal text and equality is a string comparison. ceil_div(a, b) is floor_div(a + b
// - 1, b) and thus needs no atom of its own.
#include "type/dim.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "base/name_map.h"
#include "type/dim_fractions.h"

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

void retain(const DimExpr* expr) {
  if (expr->references.load(std::memory_order_relaxed) == 0) return;
  expr->references.fetch_add(1, std::memory_order_relaxed);
}

void release(const DimExpr* expr) {
  if (expr->references.load(std::memory_order_relaxed) == 0) return;
  if (expr->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete expr;
}

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

  static Dim make(Terms terms) {
    std::sort(terms.begin(), terms.end(), [](const Monomial& x, const Monomial& y) { return x.text < y.text; });
    Terms merged;
    for (Monomial& term : terms) {
      if (!merged.empty() && merged.back().text == term.text) {
        if (__builtin_add_overflow(merged.back().coefficient, term.coefficient, &merged.back().coefficient)) return {};
      } else {
        merged.push_back(std::move(term));
      }
    }
    std::erase_if(merged, [](const Monomial& m) { return m.coefficient == 0; });
    if (merged.empty()) return 0;
    if (merged.size() == 1 && merged[0].atoms.empty()) return merged[0].coefficient;
    if (merged.size() > kMaxTerms) return {};
    auto expr = std::make_unique<DimExpr>();
    expr->terms = std::move(merged);
    expr->text = print(expr->terms);
    return Dim(expr.release());
  }

  static std::string print(const Terms& terms) {
    std::string text;
    // The constant reads best at the end.
    for (size_t k = 0; k < terms.size(); ++k) {
      const bool constant_first = terms[0].atoms.empty();
      const Monomial& m = terms[constant_first ? (k + 1) % terms.size() : k];
      const int64_t c = m.coefficient;
      if (c < 0) text += "-";
      if (c > 0 && !text.empty()) text += "+";
      const std::string magnitude = std::to_string(c < 0 ? 0 - static_cast<uint64_t>(c) : static_cast<uint64_t>(c));
      if (m.atoms.empty()) {
        text += magnitude;
      } else {
        text += magnitude == "1" ? m.text : magnitude + "*" + m.text;
      }
    }
    return text;
  }

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

  static Dim scale_add(const Dim& a, const Dim& b, int64_t sign) {
    Terms sum = terms(a);
    for (Monomial m : terms(b)) {
      if (__builtin_mul_overflow(m.coefficient, sign, &m.coefficient)) return {};
      sum.push_back(std::move(m));
    }
    return make(std::move(sum));
  }

  static Dim multiply(const Dim& a, const Dim& b) {
    const Terms x = terms(a), y = terms(b);
    if (x.size() * y.size() > kMaxTerms) return {};
    Terms product;
    for (const Monomial& p : x) {
      for (const Monomial& q : y) {
        Monomial m;
        if (__builtin_mul_overflow(p.coefficient, q.coefficient, &m.coefficient)) return {};
        m.atoms = p.atoms;
        m.atoms.insert(m.atoms.end(), q.atoms.begin(), q.atoms.end());
        if (m.atoms.size() > 8) return {};
        if (has_fraction(m) && !cancel(m)) return {};
        std::sort(m.atoms.begin(), m.atoms.end(), [](const AtomRef& s, const AtomRef& t) { return s->text < t->text; });
        m.text = product_text(m.atoms);
        product.push_back(std::move(m));
      }
    }
    return make(std::move(product));
  }

  // Fractions against what they divide, and those that are numbers into one. False where that leaves the range.
  static bool cancel(Monomial& m) {
    for (size_t i = 0; i < m.atoms.size(); ++i) {
      const Atom& f = *m.atoms[i];
      const size_t other = f.kind == Atom::Kind::kFraction ? place_of(f.b, m) : kNone;
      if (other == kNone) continue;
      m.atoms.erase(m.atoms.begin() + static_cast<ptrdiff_t>(std::max(i, other)));
      m.atoms.erase(m.atoms.begin() + static_cast<ptrdiff_t>(std::min(i, other)));
      i = kNone;  // from the start again
    }
    int64_t number = 1;
    for (const AtomRef& f : m.atoms) {
      if (!is_number(*f)) continue;
      if (__builtin_mul_overflow(number, f->b.value(), &number) || number > kMaxDenominator) return false;
    }
    std::erase_if(m.atoms, [](const AtomRef& f) { return is_number(*f); });
    if (m.coefficient == std::numeric_limits<int64_t>::min()) return false;
    const int64_t common = std::gcd(m.coefficient, number);
    m.coefficient /= common;
    if (number / common > 1) m.atoms.push_back(fraction(Dim(number / common)));
    return true;
  }

  static bool is_number(const Atom& atom) { return atom.kind == Atom::Kind::kFraction && atom.b.is_known(); }
  static AtomRef fraction(const Dim& divisor) {
    return std::make_shared<const Atom>(Atom{Atom::Kind::kFraction, "1/(" + divisor.to_string() + ")", {}, divisor});
  }

  // Where the product has `d` as an atom.
  static constexpr size_t kNone = ~size_t{0};
  static size_t place_of(const Dim& d, const Monomial& product) {
    if (!d.is_symbolic() || d.expr_->terms.size() != 1) return kNone;
    const Monomial& term = d.expr_->terms[0];
    if (term.coefficient != 1 || term.atoms.size() != 1) return kNone;
    for (size_t i = 0; i < product.atoms.size(); ++i) {
      if (product.atoms[i]->text == term.atoms[0]->text) return i;
    }
    return kNone;
  }

  static bool has_fraction(const Monomial& m) {
    return std::ranges::any_of(m.atoms, [](const AtomRef& f) { return f->kind == Atom::Kind::kFraction; });
  }

  // A quotient of integers: the least number that all fractions divide, and at most one size that all terms are divided
  // by.
  static std::optional<std::pair<Dim, Dim>> as_quotient(const Dim& d) {
    Terms numerator = terms(d);
    int64_t number = 1;
    for (const Monomial& m : numerator) {
      for (const AtomRef& f : m.atoms) {
        if (!is_number(*f)) continue;
        number = std::lcm(number, f->b.value());
        if (number > kMaxDenominator) return std::nullopt;
      }
    }
    Dim size;
    for (size_t i = 0; i < numerator.size(); ++i) {
      Monomial& m = numerator[i];
      if (__builtin_mul_overflow(m.coefficient, number, &m.coefficient)) return std::nullopt;
      Dim divisor = 1;
      for (const AtomRef& f : std::exchange(m.atoms, {})) {
        if (f->kind != Atom::Kind::kFraction) {
          m.atoms.push_back(f);
        } else if (is_number(*f)) {
          m.coefficient /= f->b.value();
        } else {
          divisor = divisor * f->b;
        }
      }
      if (i == 0) size = divisor;
      if (!same(size, divisor)) return std::nullopt;
      m.text = product_text(m.atoms);
    }
    return std::pair(make(std::move(numerator)), size * Dim(number));
  }
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
  static std::optional<Dim> exact_quotient(const Dim& a, int64_t divisor) {
    Terms quotient = terms(a);
    for (Monomial& m : quotient) {
      if (m.coefficient % divisor != 0) return std::nullopt;
      m.coefficient /= divisor;
    }
    return make(std::move(quotient));
  }

  static std::optional<int64_t> lower_bound(const Atom& atom) {
    switch (atom.kind) {
      case Atom::Kind::kSymbol:
        return 0;
      case Atom::Kind::kMod:
        return atom.b.is_known() && atom.b.value() > 0 ? std::optional<int64_t>(0) : std::nullopt;
      case Atom::Kind::kFloorDiv: {
        const auto low = atom.a.lower_bound();
        if (!low || !atom.b.is_known() || atom.b.value() <= 0) return std::nullopt;
        return floor_div(Dim(*low), atom.b).value();
      }
      case Atom::Kind::kMin: {
        const auto x = atom.a.lower_bound(), y = atom.b.lower_bound();
        return x && y ? std::optional(std::min(*x, *y)) : std::nullopt;
      }
      case Atom::Kind::kMax: {
        const auto x = atom.a.lower_bound(), y = atom.b.lower_bound();
        if (x && y) return std::max(*x, *y);
        return x ? x : y;
      }
      case Atom::Kind::kFraction:
        return atom.b.lower_bound().value_or(-1) >= 0 ? std::optional<int64_t>(0) : std::nullopt;
    }
    return std::nullopt;
  }

  // At most this many atoms are replaced by what bounds them.
  static constexpr int kMaxBoundSteps = 4;

  static std::optional<int64_t> lower_bound(const Dim& d, int steps) {
    if (d.is_known()) return d.value();
    if (!d.is_symbolic()) return std::nullopt;
    auto best = lower_bound_by_terms(*d.expr_);
    if (steps == 0 || (best && *best >= 0) || d.expr_->terms.size() > 8) return best;
    for (const Monomial& m : d.expr_->terms) {
      if (m.atoms.size() != 1 || m.atoms[0]->kind == Atom::Kind::kSymbol) continue;
      const auto found = lower_bound_without(d, m, steps - 1);
      if (found && (!best || *found > *best)) best = found;
    }
    return best;
  }

  // Lower bound of `d`, whose term `m` = k * atom is replaced by something that is not greater and has no such atom.
  static std::optional<int64_t> lower_bound_without(const Dim& d, const Monomial& m, int steps) {
    const Atom& atom = *m.atoms[0];
    const int64_t k = m.coefficient;
    const Dim rest = d - make({m});
    const auto with = [&](const Dim& bound) { return lower_bound(rest + Dim(k) * bound, steps); };
    const auto greater = [](std::optional<int64_t> x, std::optional<int64_t> y) {
      return !x || (y && *y > *x) ? y : x;
    };
    switch (atom.kind) {
      case Atom::Kind::kSymbol:
      case Atom::Kind::kFraction:
        return std::nullopt;
      case Atom::Kind::kMin:  // at most either
        return k < 0 ? greater(with(atom.a), with(atom.b)) : std::nullopt;
      case Atom::Kind::kMax:  // at least either
        return k > 0 ? greater(with(atom.a), with(atom.b)) : std::nullopt;
      case Atom::Kind::kMod:
        return k < 0 && atom.b.is_known() && atom.b.value() > 0 ? with(atom.b - Dim(1)) : std::nullopt;
      case Atom::Kind::kFloorDiv: {
        // (a - c + 1) / c <= floor(a / c) <= a / c, so c times the whole is bounded without a division.
        if (!atom.b.is_known() || atom.b.value() <= 0) return std::nullopt;
        const Dim numerator = k < 0 ? atom.a : atom.a - atom.b + Dim(1);
        const auto scaled = lower_bound(rest * atom.b + Dim(k) * numerator, steps);
        if (!scaled) return std::nullopt;
        return ceil_div(Dim(*scaled), atom.b).value();
      }
    }
    return std::nullopt;
  }

  static std::optional<int64_t> lower_bound_by_terms(const DimExpr& expr) {
    int64_t sum = 0;
    for (const Monomial& m : expr.terms) {
      int64_t low = m.coefficient;
      if (!m.atoms.empty() && m.coefficient < 0) return std::nullopt;
      for (const AtomRef& f : m.atoms) {
        const auto bound = lower_bound(*f);
        if (!bound || *bound < 0 || __builtin_mul_overflow(low, *bound, &low)) return std::nullopt;
      }
      if (__builtin_add_overflow(sum, low, &sum)) return std::nullopt;
    }
    return sum;
  }

  static bool same_text(const Dim& a, const Dim& b) { return a.expr_ == b.expr_ || a.expr_->text == b.expr_->text; }
  static const std::string& text(const Dim& d) { return d.expr_->text; }
  static const DimExpr& expr(const Dim& d) { return *d.expr_; }
};

// The first symbols that a process meets, which are those that its models repeat: made once, and never counted. There
// is an end to them, since files may name sizes as they like. Takes no lock.
class UsualSymbols {
 public:
  // Null when it is not one of them, nor can become one.
  const DimExpr* find(std::string_view name) {
    constexpr size_t kLongest = 64, kProbes = 8;
    if (name.size() > kLongest) return nullptr;
    const uint64_t hash = hash_name(name, process_seed());
    for (size_t i = 0; i < kProbes; ++i) {
      std::atomic<const DimExpr*>& place = places_[(hash + i) % kPlaces];
      const DimExpr* found = place.load(std::memory_order_acquire);
      if (!found) found = settle(place, name);
      if (found->text == name) return found;
    }
    return nullptr;
  }

 private:
  static constexpr size_t kPlaces = 2048;

  // What is in the place afterwards.
  static const DimExpr* settle(std::atomic<const DimExpr*>& place, std::string_view name) {
    const DimExpr* made = DimAlgebra::new_symbol(name);
    made->references.store(0, std::memory_order_relaxed);
    const DimExpr* other = nullptr;
    if (place.compare_exchange_strong(other, made, std::memory_order_acq_rel)) return made;
    delete made;
    return other;
  }

  std::atomic<const DimExpr*> places_[kPlaces] = {};
};

Dim Dim::symbol(std::string_view name) {
  static auto* const usual = new UsualSymbols;  // never destroyed: sizes may outlive static destructors
  const DimExpr* known = usual->find(name);
  return Dim(known ? known : DimAlgebra::new_symbol(name));
}

std::string_view Dim::symbol_name() const {
  if (!is_symbolic() || expr_->terms.size() != 1) return {};
  const Monomial& m = expr_->terms[0];
  const bool bare = m.coefficient == 1 && m.atoms.size() == 1 && m.atoms[0]->kind == Atom::Kind::kSymbol;
  return bare ? std::string_view(m.text) : std::string_view();
}

std::string Dim::to_string() const {
  if (is_known()) return std::to_string(value_);
  return is_symbolic() ? expr_->text : "?";
}

std::optional<int64_t> Dim::lower_bound() const {
  if (is_known()) return value_;
  return DimAlgebra::lower_bound(*this, DimAlgebra::kMaxBoundSteps);
}

bool same(const Dim& a, const Dim& b) {
  if (a.is_known() || b.is_known()) return a.is_known() && b.is_known() && a.value() == b.value();
  return a.is_symbolic() && b.is_symbolic() && DimAlgebra::same_text(a, b);
}

bool depends_on(const Dim& d, std::string_view symbol) {
  if (!d.is_symbolic()) return false;
  for (const Monomial& m : DimAlgebra::expr(d).terms) {
    for (const AtomRef& f : m.atoms) {
      if (f->kind == Atom::Kind::kSymbol ? f->text == symbol : depends_on(f->a, symbol) || depends_on(f->b, symbol)) {
        return true;
      }
    }
  }
  return false;
}

bool identical(const Dim& a, const Dim& b) {
  return same(a, b) || (a.is_unknown() && b.is_unknown());
}

Dim operator+(const Dim& a, const Dim& b) {
  int64_t sum = 0;
  if (a.is_known() && b.is_known()) return __builtin_add_overflow(a.value(), b.value(), &sum) ? Dim() : Dim(sum);
  if (a.is_unknown() || b.is_unknown()) return {};
  return DimAlgebra::scale_add(a, b, 1);
}

Dim operator-(const Dim& a, const Dim& b) {
  int64_t difference = 0;
  if (a.is_known() && b.is_known()) {
    return __builtin_sub_overflow(a.value(), b.value(), &difference) ? Dim() : Dim(difference);
  }
  if (a.is_unknown() || b.is_unknown()) return {};
  return DimAlgebra::scale_add(a, b, -1);
}

Dim operator*(const Dim& a, const Dim& b) {
  int64_t product = 0;
  if (a.is_known() && b.is_known())
    return __builtin_mul_overflow(a.value(), b.value(), &product) ? Dim() : Dim(product);
  if (a.is_known(0) || b.is_known(0)) return 0;
  if (a.is_unknown() || b.is_unknown()) return {};
  return DimAlgebra::multiply(a, b);
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) {
    const int64_t x = a.value(), y = b.value();
    if (y == 0 || (y == -1 && x == std::numeric_limits<int64_t>::min())) return {};
    const int64_t q = x / y;
    return q * y != x && ((x < 0) != (y < 0)) ? q - 1 : q;
  }
  if (a.is_unknown() || b.is_unknown() || b.is_known(0)) return {};
  if (b.is_known(1)) return a;
  if (b.is_known() && b.value() != -1) {
    if (auto exact = DimAlgebra::exact_quotient(a, b.value())) return *exact;
  }
  if (same(a, b) && b.lower_bound().value_or(0) > 0) return 1;
  return DimAlgebra::call(Atom::Kind::kFloorDiv, "floordiv", a, b);
}

Dim ceil_div(const Dim& a, const Dim& b) {
  return floor_div(a + b - 1, b);
}

Dim mod(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) {
    if (b.value() == 0) return {};
    if (b.value() == -1) return 0;
    const int64_t r = a.value() % b.value();
    return r != 0 && ((r < 0) != (b.value() < 0)) ? r + b.value() : r;
  }
  if (a.is_unknown() || b.is_unknown() || b.is_known(0)) return {};
  if (b.is_known(1) || (b.is_known() && b.value() > 1 && DimAlgebra::exact_quotient(a, b.value()))) return 0;
  return DimAlgebra::call(Atom::Kind::kMod, "mod", a, b);
}

namespace {

// Order of a and b, when their difference has a sign: -1, 1; 0 when unknown.
int provable_order(const Dim& a, const Dim& b) {
  if ((b - a).lower_bound().value_or(-1) >= 0) return -1;
  if ((a - b).lower_bound().value_or(-1) >= 0) return 1;
  return 0;
}

}  // namespace

Dim min(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) return std::min(a.value(), b.value());
  if (a.is_unknown() || b.is_unknown()) return {};
  if (same(a, b)) return a;
  if (const int order = provable_order(a, b)) return order < 0 ? a : b;
  const bool in_order = a.to_string() <= b.to_string();
  return DimAlgebra::call(Atom::Kind::kMin, "min", in_order ? a : b, in_order ? b : a);
}

Dim max(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) return std::max(a.value(), b.value());
  if (a.is_unknown() || b.is_unknown()) return {};
  if (same(a, b)) return a;
  if (const int order = provable_order(a, b)) return order < 0 ? b : a;
  const bool in_order = a.to_string() <= b.to_string();
  return DimAlgebra::call(Atom::Kind::kMax, "max", in_order ? a : b, in_order ? b : a);
}

// ---- Fractions

bool has_fraction(const Dim& d) {
  return d.is_symbolic() && std::ranges::any_of(DimAlgebra::expr(d).terms, DimAlgebra::has_fraction);
}

Dim dim_of_real(double number) {
  constexpr double kMost = 1LL << 40;
  constexpr int64_t kParts = 1 << 10;
  const double parts = number * kParts;
  if (!(std::abs(number) < kMost) || parts != std::floor(parts)) return {};
  return real_quotient(Dim(static_cast<int64_t>(parts)), Dim(kParts));
}

Dim real_quotient(const Dim& a, const Dim& b) {
  if (a.is_unknown() || b.is_unknown() || b.is_known(0) || has_fraction(b)) return {};
  if (b.is_known(std::numeric_limits<int64_t>::min())) return {};
  if (b.is_known() && b.value() < 0) return real_quotient(Dim(int64_t{0}) - a, Dim(-b.value()));
  if (b.is_known(1)) return a;
  if (same(a, b)) return 1;
  return a.is_known(0)
             ? a
             : DimAlgebra::multiply(a, DimAlgebra::make({{1, {DimAlgebra::fraction(b)}, "1/(" + b.to_string() + ")"}}));
}

Dim rounded_down(const Dim& d) {
  if (!has_fraction(d)) return d;
  const auto quotient = DimAlgebra::as_quotient(d);
  return quotient ? floor_div(quotient->first, quotient->second) : Dim();
}

Dim rounded_up(const Dim& d) {
  if (!has_fraction(d)) return d;
  const auto quotient = DimAlgebra::as_quotient(d);
  return quotient ? ceil_div(quotient->first, quotient->second) : Dim();
}

Dim rounded_to_zero(const Dim& d) {
  if (!has_fraction(d)) return d;
  return d.lower_bound().value_or(-1) >= 0 ? rounded_down(d) : Dim();
}

}  // namespace treadle
