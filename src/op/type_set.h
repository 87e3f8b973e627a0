#pragma once
// The types that a type constraint of an operator allows.

#include <cstdint>
#include <string>

#include "type/type.h"

namespace treadle {

// Element types allowed under each wrapping. The specification has few maps: key int64 or string, four value types.
struct TypeSet {
  ElementTypeSet tensor;
  ElementTypeSet sparse;
  ElementTypeSet sequence;           // seq(tensor(T))
  ElementTypeSet optional;           // optional(tensor(T))
  ElementTypeSet optional_sequence;  // optional(seq(tensor(T)))
  uint16_t maps = 0;                 // map_bit() of the allowed maps
  uint16_t sequence_maps = 0;        // seq(map(...)), the same bits

  constexpr TypeSet() = default;
  constexpr TypeSet(ElementTypeSet tensors) : tensor(tensors) {}

  bool contains(const Type& type) const {
    return type.is_tensor() ? tensor.contains(type.element) : contains_other(type);
  }
  std::string to_string() const;

  constexpr TypeSet operator|(const TypeSet& o) const {
    TypeSet s;
    s.tensor = tensor | o.tensor;
    s.sparse = sparse | o.sparse;
    s.sequence = sequence | o.sequence;
    s.optional = optional | o.optional;
    s.optional_sequence = optional_sequence | o.optional_sequence;
    s.maps = static_cast<uint16_t>(maps | o.maps);
    s.sequence_maps = static_cast<uint16_t>(sequence_maps | o.sequence_maps);
    return s;
  }
  TypeSet operator-(const TypeSet& o) const;
  friend constexpr TypeSet operator|(ElementTypeSet a, const TypeSet& b) { return TypeSet(a) | b; }
  friend constexpr bool operator==(const TypeSet&, const TypeSet&) = default;

 private:
  bool contains_other(const Type& type) const;
};

// The bit of map(key, value) in TypeSet::maps; 0 if the specification has no such map.
constexpr uint16_t map_bit(ElementType key, ElementType value) {
  int shift = -1;
  if (value == ElementType::kString) shift = 0;
  if (value == ElementType::kInt64) shift = 1;
  if (value == ElementType::kFloat) shift = 2;
  if (value == ElementType::kDouble) shift = 3;
  if (shift < 0 || (key != ElementType::kInt64 && key != ElementType::kString)) return 0;
  return static_cast<uint16_t>(1 << (key == ElementType::kString ? shift + 4 : shift));
}

constexpr TypeSet sequences_of(ElementTypeSet elements) {
  TypeSet s;
  s.sequence = elements;
  return s;
}
constexpr TypeSet optionals_of(ElementTypeSet elements) {
  TypeSet s;
  s.optional = elements;
  return s;
}
constexpr TypeSet optional_sequences_of(ElementTypeSet elements) {
  TypeSet s;
  s.optional_sequence = elements;
  return s;
}
constexpr TypeSet sparse_of(ElementTypeSet elements) {
  TypeSet s;
  s.sparse = elements;
  return s;
}
constexpr TypeSet maps_of(ElementType key, ElementType value) {
  TypeSet s;
  s.maps = map_bit(key, value);
  return s;
}
constexpr TypeSet sequence_maps_of(ElementType key, ElementType value) {
  TypeSet s;
  s.sequence_maps = map_bit(key, value);
  return s;
}

}  // namespace treadle
