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

// The method named `wanted` if it fits, else the first that fits and pays; null: there is none.
template <class Method, class Fits, class Pays>
const Method* choose(std::span<const Method* const> methods, std::string_view wanted, const Fits& fits,
                     const Pays& pays) {
  const auto first = [&](const auto& takes) {
    const auto found = std::find_if(methods.begin(), methods.end(), takes);
    return found == methods.end() ? nullptr : *found;
  };
  const Method* const named = first([&](const Method* m) { return m->name == wanted && fits(m); });
  return named != nullptr ? named : first([&](const Method* m) { return fits(m) && pays(m); });
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
