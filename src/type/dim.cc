#include "type/dim.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/name_map.h"
#include "type/dim_algebra.h"

namespace treadle {

namespace detail {

void retain(const DimExpr* expr) {
  if (expr->references.load(std::memory_order_relaxed) == 0) return;
  expr->references.fetch_add(1, std::memory_order_relaxed);
}

void release(const DimExpr* expr) {
  if (expr->references.load(std::memory_order_relaxed) == 0) return;
  if (expr->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete expr;
}

}  // namespace detail

// The first symbols of the process, which its models use most. They are made once and never counted. Their number is
// bounded, since files may use any names. Takes no lock.
class UsualSymbols {
 public:
  // Null if it is not one of them and cannot become one.
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

  // Publishes a symbol in the place, and returns the one that is there afterwards.
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
  if (is_unknown()) return value_ == kUnbounded ? std::nullopt : std::optional(value_);
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

namespace {

// A sum or product with an unknown: an unknown whose least value is `combine` of the operands' least values.
template <class Combine>
Dim least_of(const Dim& a, const Dim& b, Combine&& combine) {
  const auto x = a.lower_bound(), y = b.lower_bound();
  int64_t least = 0;
  return x && y && !combine(*x, *y, &least) ? Dim::at_least(least) : Dim();
}

}  // namespace

Dim operator+(const Dim& a, const Dim& b) {
  int64_t sum = 0;
  if (a.is_known() && b.is_known()) return __builtin_add_overflow(a.value(), b.value(), &sum) ? Dim() : Dim(sum);
  if (a.is_unknown() || b.is_unknown()) {
    return least_of(a, b, [](int64_t x, int64_t y, int64_t* to) { return __builtin_add_overflow(x, y, to); });
  }
  return DimAlgebra::scale_add(a, b, 1);
}

Dim operator-(const Dim& a, const Dim& b) {
  int64_t difference = 0;
  if (a.is_known() && b.is_known()) {
    return __builtin_sub_overflow(a.value(), b.value(), &difference) ? Dim() : Dim(difference);
  }
  if (a.is_unknown() && b.is_known()) {
    return least_of(a, b, [](int64_t x, int64_t y, int64_t* to) { return __builtin_sub_overflow(x, y, to); });
  }
  if (a.is_unknown() || b.is_unknown()) return {};
  return DimAlgebra::scale_add(a, b, -1);
}

Dim operator*(const Dim& a, const Dim& b) {
  int64_t product = 0;
  if (a.is_known() && b.is_known())
    return __builtin_mul_overflow(a.value(), b.value(), &product) ? Dim() : Dim(product);
  if (a.is_known(0) || b.is_known(0)) return 0;
  if (a.is_unknown() || b.is_unknown()) {
    return least_of(
        a, b, [](int64_t x, int64_t y, int64_t* to) { return x < 0 || y < 0 || __builtin_mul_overflow(x, y, to); });
  }
  return DimAlgebra::multiply(a, b);
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) {
    const int64_t x = a.value(), y = b.value();
    if (y == 0 || (y == -1 && x == std::numeric_limits<int64_t>::min())) return {};
    const int64_t q = x / y;
    return q * y != x && ((x < 0) != (y < 0)) ? q - 1 : q;
  }
  if (b.is_known(1)) return a;
  if (a.is_unknown() && b.is_known() && b.value() > 0) {
    return least_of(a, b, [](int64_t x, int64_t y, int64_t* to) { return *to = x / y, x < 0; });
  }
  if (a.is_unknown() || b.is_unknown() || b.is_known(0)) return {};
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

// -1 or 1 if the difference of a and b has a known sign; 0 if not.
int provable_order(const Dim& a, const Dim& b) {
  if ((b - a).lower_bound().value_or(-1) >= 0) return -1;
  if ((a - b).lower_bound().value_or(-1) >= 0) return 1;
  return 0;
}

}  // namespace

Dim min(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) return std::min(a.value(), b.value());
  if (a.is_unknown() || b.is_unknown()) {
    const auto x = a.lower_bound(), y = b.lower_bound();
    if (a.is_known() && y && *y >= a.value()) return a;
    if (b.is_known() && x && *x >= b.value()) return b;
    return x && y ? Dim::at_least(std::min(*x, *y)) : Dim();
  }
  if (same(a, b)) return a;
  if (const int order = provable_order(a, b)) return order < 0 ? a : b;
  const bool in_order = a.to_string() <= b.to_string();
  return DimAlgebra::call(Atom::Kind::kMin, "min", in_order ? a : b, in_order ? b : a);
}

Dim max(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) return std::max(a.value(), b.value());
  if (a.is_unknown() || b.is_unknown()) {
    const auto x = a.lower_bound(), y = b.lower_bound();
    return x || y ? Dim::at_least(x && y ? std::max(*x, *y) : x ? *x : *y) : Dim();
  }
  if (same(a, b)) return a;
  if (const int order = provable_order(a, b)) return order < 0 ? b : a;
  const bool in_order = a.to_string() <= b.to_string();
  return DimAlgebra::call(Atom::Kind::kMax, "max", in_order ? a : b, in_order ? b : a);
}

}  // namespace treadle
