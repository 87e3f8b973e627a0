#include "op/type_set.h"

namespace treadle {

namespace {

bool contains_map(uint16_t maps, const Type& map) {
  if (map.kind != Type::Kind::kMap || !map.child || !map.child->is_tensor()) return false;
  return maps & map_bit(map.element, map.child->element);
}

void append(std::string& text, ElementTypeSet set, const char* before, const char* after) {
  for (int i = 1; i < kElementTypeCount; ++i) {
    const auto type = static_cast<ElementType>(i);
    if (!set.contains(type)) continue;
    text += (text.empty() ? "" : ", ") + std::string(before) + std::string(name(type)) + after;
  }
}

void append_maps(std::string& text, uint16_t maps, const char* before, const char* after) {
  for (ElementType key : {ElementType::kInt64, ElementType::kString}) {
    for (ElementType value : {ElementType::kString, ElementType::kInt64, ElementType::kFloat, ElementType::kDouble}) {
      if (!(maps & map_bit(key, value))) continue;
      text += (text.empty() ? "" : ", ") + std::string(before) + "map(" + std::string(name(key)) + ",tensor(" +
              std::string(name(value)) + "))" + after;
    }
  }
}

}  // namespace

bool TypeSet::contains_other(const Type& type) const {
  switch (type.kind) {
    case Type::Kind::kUnknown:
      return true;
    case Type::Kind::kTensor:
      return tensor.contains(type.element);
    case Type::Kind::kSparseTensor:
      return sparse.contains(type.element);
    case Type::Kind::kMap:
      return contains_map(maps, type);
    case Type::Kind::kSequence:
      if (!type.child) return false;
      if (type.child->kind == Type::Kind::kMap) return contains_map(sequence_maps, *type.child);
      return type.child->is_tensor() && sequence.contains(type.child->element);
    case Type::Kind::kOptional:
      if (!type.child) return false;
      if (type.child->is_tensor()) return optional.contains(type.child->element);
      return type.child->kind == Type::Kind::kSequence && type.child->child && type.child->child->is_tensor() &&
             optional_sequence.contains(type.child->child->element);
  }
  return false;
}

TypeSet TypeSet::operator-(const TypeSet& o) const {
  TypeSet s;
  s.tensor = tensor - o.tensor;
  s.sparse = sparse - o.sparse;
  s.sequence = sequence - o.sequence;
  s.optional = optional - o.optional;
  s.optional_sequence = optional_sequence - o.optional_sequence;
  s.maps = static_cast<uint16_t>(maps & ~o.maps);
  s.sequence_maps = static_cast<uint16_t>(sequence_maps & ~o.sequence_maps);
  return s;
}

std::string TypeSet::to_string() const {
  std::string text;
  append(text, tensor, "tensor(", ")");
  append(text, sparse, "sparse_tensor(", ")");
  append(text, sequence, "seq(tensor(", "))");
  append(text, optional, "optional(tensor(", "))");
  append(text, optional_sequence, "optional(seq(tensor(", ")))");
  append_maps(text, maps, "", "");
  append_maps(text, sequence_maps, "seq(", ")");
  return text;
}

}  // namespace treadle
