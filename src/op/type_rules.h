#pragma once
// Types of arguments against an operator's type constraints. Sizes do not matter.

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "op/op_def.h"

namespace treadle {

// "tensor(float)": the type as constraints name it.
std::string without_shape(const Type& type);
// Known down to the elements, so that it can be held against a set of types.
bool is_complete(const Type& type);

struct TypeViolation {
  std::string expected;
  std::string_view
      rival;  // the argument that made the type variable stand for another type; empty: no such type at all
};

// The rules of one node: constraints of its version, and type variables bound by the arguments seen so far.
class TypeRules {
 public:
  explicit TypeRules(const OpVersion& version) : version_(&version) {}
  // Starts again with another node.
  void begin(const OpVersion& version) {
    version_ = &version;
    bound_.clear();
  }

  // `argument` names it in a later violation; it and `type` have to stay. Incomplete types break no rule.
  std::optional<TypeViolation> check(const Formal& formal, const Type& type, std::string_view argument) {
    if (allows(formal, type, argument)) return std::nullopt;
    return check_any(formal, type, argument);
  }

 private:
  // Whether it is a tensor that breaks no rule, as most arguments are. Otherwise check_any() knows more.
  bool allows(const Formal& formal, const Type& type, std::string_view argument) {
    if (!type.is_tensor() || formal.constraint == Formal::kNoConstraint) return false;
    if (!version_->types[static_cast<size_t>(formal.constraint)].types.tensor.contains(type.element)) return false;
    if (formal.arity == Arity::kVariadicMixed) return true;
    for (const Binding& first : bound_) {
      if (first.constraint == formal.constraint) return first.type->is_tensor() && first.type->element == type.element;
    }
    bound_.push_back({formal.constraint, argument, &type});
    return true;
  }
  std::optional<TypeViolation> check_any(const Formal& formal, const Type& type, std::string_view argument);

  struct Binding {
    int constraint;
    std::string_view argument;
    const Type* type;
  };
  const OpVersion* version_;
  InlineVector<Binding, 4> bound_;
};

// Holds a node's arguments (null or unknown: nothing is said) against its rules.
// Errors: kInvalidModel with the argument, what is expected of it and what was found.
Status check_type_rules(const ir::NodeInfo& node, std::span<const Type* const> inputs,
                        std::span<const Type* const> outputs);

// Why inference does not know the sizes of an output though it is given all inputs: mostly an input that should list
// sizes or axes and is no list.
Status sizes_not_told(const ir::NodeInfo& node, std::span<const Type* const> inputs, size_t output, const Type& found);

}  // namespace treadle
