#pragma once
// The type of a value: tensor, sparse tensor, sequence, optional or map.

#include <memory>
#include <string>

#include "base/status.h"
#include "type/element_type.h"
#include "type/shape.h"

namespace treadle {

struct Type {
  enum class Kind : uint8_t { kUnknown, kTensor, kSparseTensor, kSequence, kOptional, kMap };

  Kind kind = Kind::kUnknown;
  ElementType element = ElementType::kUndefined;  // of a tensor, or of the keys of a map
  bool has_shape = false;                         // false: the rank is unknown
  Shape shape;
  std::shared_ptr<const Type> child;  // element of a sequence or optional, value of a map

  static Type tensor(ElementType element) {
    Type type;
    type.kind = Kind::kTensor;
    type.element = element;
    return type;
  }
  static Type tensor(ElementType element, Shape shape) {
    Type type = tensor(element);
    type.has_shape = true;
    type.shape = std::move(shape);
    return type;
  }
  static Type sequence(Type element) { return wrap(Kind::kSequence, std::move(element)); }
  static Type optional(Type element) { return wrap(Kind::kOptional, std::move(element)); }
  static Type map(ElementType key, Type value) {
    Type type = wrap(Kind::kMap, std::move(value));
    type.element = key;
    return type;
  }

  bool is_tensor() const { return kind == Kind::kTensor; }
  bool is_known() const { return kind != Kind::kUnknown; }
  // Whether it is a tensor whose sizes are all known integers.
  bool is_concrete() const { return is_tensor() && has_shape && treadle::is_known(shape); }
  int64_t rank() const { return has_shape ? static_cast<int64_t>(shape.size()) : -1; }
  // ONNX's own notation: "tensor(float)[N,3]", "seq(tensor(int64))", "optional(...)", "map(string,tensor(float))".
  std::string to_string() const;

 private:
  static Type wrap(Kind kind, Type inner) {
    Type type;
    type.kind = kind;
    type.child = std::make_shared<const Type>(std::move(inner));
    return type;
  }
};

// Whether kinds, element types and nesting are equal. Sizes do not matter.
bool same_structure(const Type& a, const Type& b);
// Whether same_structure() holds and shapes are identical.
bool identical(const Type& a, const Type& b);

// The combined knowledge about a value that has both types (such as a declared and an inferred one). Known sizes are
// preferred to symbolic ones, and those to unknown ones. Errors: the types contradict each other.
Result<Type> merge(const Type& declared, const Type& inferred);
// The most precise type that covers both (results of two branches, a loop state before and after an iteration). Sizes
// that differ become unknown; different ranks leave no shape. Errors: kinds or element types differ.
Result<Type> unite(const Type& a, const Type& b);

}  // namespace treadle
