#include "run/options.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace treadle {

namespace {

constexpr std::pair<std::string_view, Jit> kJits[] = {
    {"off", Jit::kOff}, {"auto", Jit::kAuto}, {"always", Jit::kAlways}, {"required", Jit::kRequired}};

}  // namespace

std::string_view name(Jit jit) {
  return std::find_if(std::begin(kJits), std::end(kJits), [&](const auto& each) { return each.second == jit; })->first;
}

std::optional<Jit> jit_named(std::string_view name) {
  for (const auto& [each, jit] : kJits) {
    if (each == name) return jit;
  }
  return std::nullopt;
}

}  // namespace treadle
