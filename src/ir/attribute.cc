#include "ir/attribute.h"

#include <algorithm>

namespace treadle::ir {

std::string_view kind_name(AttributeKind kind) {
  static constexpr std::string_view kNames[] = {
      "undefined", "float",   "int",    "string",        "tensor",         "graph",      "floats",      "ints",
      "strings",   "tensors", "graphs", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos",
  };
  const auto i = static_cast<size_t>(kind);
  return i < std::size(kNames) ? kNames[i] : "undefined";
}

void Attributes::set(Attribute attribute) {
  for (Attribute& a : list_) {
    if (a.name == attribute.name) {
      a = std::move(attribute);
      return;
    }
  }
  list_.push_back(std::move(attribute));
}

void Attributes::erase(std::string_view name) {
  std::erase_if(list_, [&](const Attribute& a) { return a.name == name; });
}

}  // namespace treadle::ir
