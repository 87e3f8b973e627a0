#include "check/type_rules.h"

#include <unordered_map>

#include "op/op_def.h"

namespace treadle {

namespace {

// A type without its sizes, as constraints speak of it.
std::string structure(const Type& type) {
  switch (type.kind) {
    case Type::Kind::kTensor:
      return fmt::format("tensor({})", name(type.element));
    case Type::Kind::kSparseTensor:
      return fmt::format("sparse_tensor({})", name(type.element));
    case Type::Kind::kSequence:
      return fmt::format("seq({})", structure(*type.child));
    case Type::Kind::kOptional:
      return fmt::format("optional({})", structure(*type.child));
    case Type::Kind::kMap:
      return fmt::format("map({},{})", name(type.element), structure(*type.child));
    case Type::Kind::kUnknown:
      break;
  }
  return "?";
}

// Whether every element type in it is known.
bool is_complete(const Type& type) {
  if (!type.is_known()) return false;
  if (type.child) return is_complete(*type.child);
  return type.element != ElementType::kUndefined;
}

class TypeRules {
 public:
  explicit TypeRules(const OpVersion& version) : version_(version) {}

  Status check(const char* role, size_t i, const Formal* formal, const Type* type) {
    if (!formal || !type || !is_complete(*type)) return {};
    const TypeConstraint* constraint = version_.constraint(formal->type);
    if (!constraint) {
      if (structure(*type) == formal->type) return {};
      return mismatch(role, i, *formal, formal->type, *type);
    }
    if (!constraint->types.contains(*type)) {
      return mismatch(role, i, *formal, constraint->types.to_string(), *type);
    }
    if (formal->arity == Arity::kVariadicMixed) return {};
    const auto [it, fresh] = bound_.try_emplace(formal->type, Binding{type, role, formal->name});
    if (fresh || same_structure(*it->second.type, *type)) return {};
    return error(Code::kInvalidModel, "{} {} ({}) is {}, but {} {} makes {} stand for {}", role, i, formal->name,
                 structure(*type), it->second.role, it->second.name, formal->type, structure(*it->second.type));
  }

 private:
  struct Binding {
    const Type* type;
    const char* role;
    std::string_view name;
  };

  static Status mismatch(const char* role, size_t i, const Formal& formal, const std::string& expected,
                         const Type& found) {
    return error(Code::kInvalidModel, "{} {} ({}) is {}, expected {}", role, i, formal.name, structure(found),
                 expected);
  }

  const OpVersion& version_;
  std::unordered_map<std::string_view, Binding> bound_;
};

}  // namespace

Status check_type_rules(const ir::NodeInfo& node, std::span<const Type* const> inputs,
                        std::span<const Type* const> outputs) {
  TypeRules rules(*node.version);
  for (size_t i = 0; i < inputs.size(); ++i) TREADLE_TRY(rules.check("input", i, node.version->input(i), inputs[i]));
  for (size_t i = 0; i < outputs.size(); ++i) {
    TREADLE_TRY(rules.check("output", i, node.version->output(i), outputs[i]));
  }
  return {};
}

}  // namespace treadle
