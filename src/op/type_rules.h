#pragma once
// Compares types of arguments with an operator's type constraints. Sizes do not matter.

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "op/op_def.h"

namespace treadle {

// The type as constraints name it, such as "tensor(float)".
std::string without_shape(const Type& type);
// Whether the type is known down to its elements, so that it can be compared with a set of types.
bool is_complete(const Type& type);

struct TypeViolation {
  std::string expected;
  std::string_view rival;  // the argument that bound the type variable to another type; empty: the constraint does not
                           // allow the type at all
};

// The rules of one node: the constraints of its version, and type variables bound by the arguments seen so far.
class TypeRules {
 public:
  explicit TypeRules(const OpVersion& version) : version_(&version) {}
  // Starts again for another node.
  void begin(const OpVersion& version) {
    version_ = &version;
    bound_.clear();
  }

  // `argument`: the name of the argument in later violations; it and `type` must stay valid. Incomplete types break no
  // rule.
  std::optional<TypeViolation> check(const Formal& formal, const Type& type, std::string_view argument) {
    if (allows(formal, type, argument)) return std::nullopt;
    return check_any(formal, type, argument);
  }

 private:
  // Whether it is a tensor that breaks no rule, as most arguments are. If not, check_any() decides.
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

// Checks a node's arguments (null or unknown: not checked) against its rules. Errors: kInvalidModel with the argument,
// the expected types and the type found.
Status check_type_rules(const ir::NodeInfo& node, std::span<const Type* const> inputs,
                        std::span<const Type* const> outputs);

// The error that inference leaves sizes of an output unknown although all inputs are known: mostly an input that should
// list sizes or axes and is no list.
Status sizes_not_told(const ir::NodeInfo& node, std::span<const Type* const> inputs, size_t output, const Type& found);

}  // namespace treadle
