#pragma once
// Choosing a row from a table of methods, for floats and for bytes.

#include <algorithm>
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

// The first method for which `takes` is true; null: there is none.
template <class Method, class Takes>
const Method* find_first(std::span<const Method* const> methods, const Takes& takes) {
  const auto found = std::find_if(methods.begin(), methods.end(), takes);
  return found == methods.end() ? nullptr : *found;
}

// The method named `wanted` if it fits, or null.
template <class Method, class Fits>
const Method* find_named(std::span<const Method* const> methods, std::string_view wanted, const Fits& fits) {
  return find_first(methods, [&](const Method* m) { return m->name == wanted && fits(m); });
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
