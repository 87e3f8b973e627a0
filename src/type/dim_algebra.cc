#include "type/dim_algebra.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace treadle {

Dim DimAlgebra::make(Terms terms) {
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

std::string DimAlgebra::print(const Terms& terms) {
  std::string text;
  // The constant is printed last.
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

Dim DimAlgebra::scale_add(const Dim& a, const Dim& b, int64_t sign) {
  Terms sum = terms(a);
  for (Monomial m : terms(b)) {
    if (__builtin_mul_overflow(m.coefficient, sign, &m.coefficient)) return {};
    sum.push_back(std::move(m));
  }
  return make(std::move(sum));
}

Dim DimAlgebra::multiply(const Dim& a, const Dim& b) {
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

bool DimAlgebra::cancel(Monomial& m) {
  for (size_t i = 0; i < m.atoms.size(); ++i) {
    const Atom& f = *m.atoms[i];
    const size_t other = f.kind == Atom::Kind::kFraction ? index_of(f.b, m) : kNone;
    if (other == kNone) continue;
    m.atoms.erase(m.atoms.begin() + static_cast<ptrdiff_t>(std::max(i, other)));
    m.atoms.erase(m.atoms.begin() + static_cast<ptrdiff_t>(std::min(i, other)));
    i = kNone;  // starts again
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

size_t DimAlgebra::index_of(const Dim& d, const Monomial& product) {
  if (!d.is_symbolic() || d.expr_->terms.size() != 1) return kNone;
  const Monomial& term = d.expr_->terms[0];
  if (term.coefficient != 1 || term.atoms.size() != 1) return kNone;
  for (size_t i = 0; i < product.atoms.size(); ++i) {
    if (product.atoms[i]->text == term.atoms[0]->text) return i;
  }
  return kNone;
}

std::optional<std::pair<Dim, Dim>> DimAlgebra::as_quotient(const Dim& d) {
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

std::optional<Dim> DimAlgebra::exact_quotient(const Dim& a, int64_t divisor) {
  Terms quotient = terms(a);
  for (Monomial& m : quotient) {
    if (m.coefficient % divisor != 0) return std::nullopt;
    m.coefficient /= divisor;
  }
  return make(std::move(quotient));
}

std::optional<int64_t> DimAlgebra::lower_bound(const Atom& atom) {
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

std::optional<int64_t> DimAlgebra::lower_bound(const Dim& d, int steps) {
  if (d.is_known()) return d.value();
  if (!d.is_symbolic()) return d.lower_bound();
  auto best = lower_bound_by_terms(*d.expr_);
  if (steps == 0 || (best && *best >= 0) || d.expr_->terms.size() > 8) return best;
  for (const Monomial& m : d.expr_->terms) {
    if (m.atoms.size() != 1 || m.atoms[0]->kind == Atom::Kind::kSymbol) continue;
    const auto found = lower_bound_without(d, m, steps - 1);
    if (found && (!best || *found > *best)) best = found;
  }
  return best;
}

std::optional<int64_t> DimAlgebra::lower_bound_without(const Dim& d, const Monomial& m, int steps) {
  const Atom& atom = *m.atoms[0];
  const int64_t k = m.coefficient;
  const Dim rest = d - make({m});
  const auto with = [&](const Dim& bound) { return lower_bound(rest + Dim(k) * bound, steps); };
  const auto greater = [](std::optional<int64_t> x, std::optional<int64_t> y) { return !x || (y && *y > *x) ? y : x; };
  switch (atom.kind) {
    case Atom::Kind::kSymbol:
    case Atom::Kind::kFraction:
      return std::nullopt;
    case Atom::Kind::kMin:  // at most either operand
      return k < 0 ? greater(with(atom.a), with(atom.b)) : std::nullopt;
    case Atom::Kind::kMax:  // at least either operand
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

std::optional<int64_t> DimAlgebra::lower_bound_by_terms(const DimExpr& expr) {
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

}  // namespace treadle
