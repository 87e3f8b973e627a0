#include "op/type_rules.h"

#include <algorithm>

namespace treadle {

std::string without_shape(const Type& type) {
  const auto inner = [&] { return type.child ? without_shape(*type.child) : "?"; };
  switch (type.kind) {
    case Type::Kind::kTensor:
      return fmt::format("tensor({})", name(type.element));
    case Type::Kind::kSparseTensor:
      return fmt::format("sparse_tensor({})", name(type.element));
    case Type::Kind::kSequence:
      return fmt::format("seq({})", inner());
    case Type::Kind::kOptional:
      return fmt::format("optional({})", inner());
    case Type::Kind::kMap:
      return fmt::format("map({},{})", name(type.element), inner());
    case Type::Kind::kUnknown:
      break;
  }
  return "unknown";
}

bool is_complete(const Type& type) {
  if (!type.is_known()) return false;
  if (type.is_tensor() || type.kind == Type::Kind::kSparseTensor) return type.element != ElementType::kUndefined;
  return type.child && is_complete(*type.child);
}

namespace {

// Whether `wanted`, such as "tensor(int64)", is the type's name.
bool is_named(std::string_view wanted, const Type& type) {
  constexpr std::string_view kTensor = "tensor(";
  if (!type.is_tensor()) return wanted == without_shape(type);
  const std::string_view element = name(type.element);
  return wanted.size() == kTensor.size() + element.size() + 1 && wanted.starts_with(kTensor) &&
         wanted.substr(kTensor.size(), element.size()) == element && wanted.back() == ')';
}

}  // namespace

std::optional<TypeViolation> TypeRules::check_any(const Formal& formal, const Type& type, std::string_view argument) {
  if (!is_complete(type)) return std::nullopt;
  const TypeConstraint* constraint = version_->constraint(formal);
  if (!constraint) {
    if (is_named(formal.type, type)) return std::nullopt;
    return TypeViolation{formal.type, {}};
  }
  if (!constraint->types.contains(type)) return TypeViolation{constraint->types.to_string(), {}};
  if (formal.arity == Arity::kVariadicMixed) return std::nullopt;
  for (const Binding& first : bound_) {
    if (first.constraint != formal.constraint) continue;
    if (same_structure(*first.type, type)) return std::nullopt;
    return TypeViolation{without_shape(*first.type), first.argument};
  }
  bound_.push_back({formal.constraint, argument, &type});
  return std::nullopt;
}

Status check_type_rules(const ir::NodeInfo& node, std::span<const Type* const> inputs,
                        std::span<const Type* const> outputs) {
  TypeRules rules(*node.version);
  const auto check = [&](const char* role, size_t i, const Formal* formal, const Type* type) -> Status {
    const auto violation = formal && type ? rules.check(*formal, *type, formal->name) : std::nullopt;
    if (!violation) return {};
    return error(Code::kInvalidModel, "{} {} ({}) is {}, expected {}{}", role, i, formal->name, without_shape(*type),
                 violation->expected,
                 violation->rival.empty() ? std::string() : fmt::format(" as {} is", violation->rival));
  };
  for (size_t i = 0; i < inputs.size(); ++i) TREADLE_TRY(check("input", i, node.version->input(i), inputs[i]));
  for (size_t i = 0; i < outputs.size(); ++i) TREADLE_TRY(check("output", i, node.version->output(i), outputs[i]));
  return {};
}

Status sizes_not_told(const ir::NodeInfo& node, std::span<const Type* const> inputs, size_t output, const Type& found) {
  for (size_t i = 0; i < std::min<size_t>(inputs.size(), 64); ++i) {
    const bool lists = node.op->shape_inputs >> i & 1;
    if (!lists || !inputs[i] || !inputs[i]->has_shape || inputs[i]->shape.size() <= 1) continue;
    const Formal* formal = node.version->input(i);
    return error(Code::kInvalidArgument, "{} has shape {}, expected one dimension", formal ? formal->name : "input",
                 to_string(inputs[i]->shape));
  }
  return error(Code::kInvalidModel, "output {} is {}, expected inputs that tell its sizes", output, found.to_string());
}

}  // namespace treadle
