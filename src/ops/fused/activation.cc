#include "ops/fused/activation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace treadle::fused {

namespace {

struct Known {
  std::string_view name;
  std::array<const char*, 2> parameters;  // null: no further parameter
};

constexpr Known kKnown[] = {
    {"Celu", {"alpha"}},
    {"Clip", {"min", "max"}},
    {"Elu", {"alpha"}},
    {"Gelu", {}},
    {"HardSwish", {}},
    {"HardSigmoid", {"alpha", "beta"}},
    {"LeakyRelu", {"alpha"}},
    {"Mish", {}},
    {"Relu", {}},
    {"Selu", {"alpha", "gamma"}},
    {"Sigmoid", {}},
    {"Softmax", {}},
    {"Softplus", {}},
    {"Softsign", {}},
    {"Tanh", {}},
    {"ThresholdedRelu", {"alpha"}},
};

const Known* find(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& k) { return k.name == name; });
  return found == std::end(kKnown) ? nullptr : found;
}

}  // namespace

Status Activation::check() const {
  if (name.empty() || find(name)) return {};
  std::string names;
  for (const Known& k : kKnown) names += fmt::format("{}{}", names.empty() ? "" : ", ", k.name);
  return error(Code::kInvalidModel, "attribute activation is '{}', expected one of {}", name, names);
}

ir::Value* Activation::apply(LowerContext& ctx, ir::Value* x, ElementType type) const {
  if (name.empty()) return x;
  if (name == "Clip") {
    const auto bound = [&](size_t i) -> ir::Value* {
      return i < parameters.size() ? ctx.number(static_cast<double>(parameters[i]), type) : nullptr;
    };
    return ctx.call("Clip", {x, bound(0), bound(1)});
  }
  std::vector<ir::Attribute> attributes;
  const Known& known = *find(name);
  for (size_t i = 0; i < parameters.size() && i < known.parameters.size() && known.parameters[i]; ++i) {
    attributes.push_back(ir::Attribute::of(known.parameters[i], parameters[i]));
  }
  return ctx.call(name, {x}, std::move(attributes));
}

Activation read_activation(const ir::Attributes& attributes) {
  Activation activation{std::string(attributes.get_string("activation")), {}};
  const auto listed = attributes.get_floats("activation_params");
  for (const float value : listed) activation.parameters.push_back(value);
  if (!listed.empty()) return activation;
  const bool selu = activation.name == "Selu";
  for (const char* letter : {"activation_alpha", selu ? "activation_gamma" : "activation_beta"}) {
    if (!attributes.has(letter)) break;
    activation.parameters.push_back(attributes.get_float(letter));
  }
  return activation;
}

void add_activation_letters(VersionBuilder& version) {
  version.optional("activation_alpha", ir::AttributeKind::kFloat)
      .optional("activation_beta", ir::AttributeKind::kFloat)
      .optional("activation_gamma", ir::AttributeKind::kFloat);
}

}  // namespace treadle::fused
