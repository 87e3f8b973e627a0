#include "type/dim_values.h"

#include "type/dim_algebra.h"

namespace treadle {

namespace {

Dim symbol_value(const std::string& name, const SymbolSizes& sizes) {
  const auto found = sizes.find(name);
  return found == sizes.end() ? Dim::symbol(name) : Dim(found->second);
}

Dim value_of(const Atom& atom, const SymbolSizes& sizes) {
  if (atom.kind == Atom::Kind::kSymbol) return symbol_value(atom.text, sizes);
  const Dim a = with_sizes(atom.a, sizes), b = with_sizes(atom.b, sizes);
  switch (atom.kind) {
    case Atom::Kind::kFloorDiv:
      return floor_div(a, b);
    case Atom::Kind::kMod:
      return mod(a, b);
    case Atom::Kind::kMin:
      return min(a, b);
    default:
      return max(a, b);
  }
}

}  // namespace

Dim with_sizes(const Dim& dim, const SymbolSizes& sizes) {
  if (!dim.is_symbolic()) return dim;
  Dim sum = 0;
  for (const Monomial& term : DimAlgebra::expr(dim).terms) {
    Dim product = term.coefficient, divisor = 1;
    for (const AtomRef& atom : term.atoms) {
      if (atom->kind == Atom::Kind::kFraction) {
        divisor = divisor * with_sizes(atom->b, sizes);
      } else {
        product = product * value_of(*atom, sizes);
      }
    }
    sum = sum + (divisor.is_known(1) ? product : floor_div(product, divisor));
  }
  return sum;
}

Shape with_sizes(const Shape& shape, const SymbolSizes& sizes) {
  Shape all;
  for (const Dim& dim : shape) all.push_back(with_sizes(dim, sizes));
  return all;
}

}  // namespace treadle
