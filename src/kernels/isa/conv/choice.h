#pragma once
// Choosing a row from a table of methods, for floats and for bytes.

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template <class Method>
std::vector<std::string_view> names_of(std::span<const Method* const> methods) {
  std::vector<std::string_view> names;
  for (const Method* m : methods) names.push_back(m->name);
  return names;
}

template <class Method>
struct Chosen {
  const Method* method = nullptr;  // null: none fits
  double ns = std::numeric_limits<double>::infinity();
};

// The method named `wanted` if it fits, or null.
template <class Method, class Fits>
const Method* find_named(std::span<const Method* const> methods, std::string_view wanted, const Fits& fits) {
  const auto found =
      std::find_if(methods.begin(), methods.end(), [&](const Method* m) { return m->name == wanted && fits(m); });
  return found == methods.end() ? nullptr : *found;
}

// The cheapest that fits, and of equal ones the first.
template <class Method, class Fits, class Cost>
Chosen<Method> choose_cheapest(std::span<const Method* const> methods, const Fits& fits, const Cost& cost_ns) {
  Chosen<Method> best;
  for (const Method* m : methods) {
    if (!fits(m)) continue;
    const double ns = cost_ns(m);
    if (ns < best.ns) best = {m, ns};
  }
  return best;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
