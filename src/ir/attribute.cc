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

std::vector<Attribute>& Attributes::own() {
  if (!list_) {
    list_ = std::make_shared<std::vector<Attribute>>();
  } else if (list_.use_count() > 1) {
    auto copy = std::make_shared<std::vector<Attribute>>();
    copy->reserve(list_->size() + 2);  // copies are made to be added to
    copy->assign(list_->begin(), list_->end());
    list_ = std::move(copy);
  }
  return *list_;
}

void Attributes::set(Attribute attribute) {
  std::vector<Attribute>& list = own();
  for (Attribute& a : list) {
    if (a.name == attribute.name) {
      a = std::move(attribute);
      return;
    }
  }
  list.push_back(std::move(attribute));
}

void Attributes::erase(std::string_view name) {
  if (has(name)) std::erase_if(own(), [&](const Attribute& a) { return a.name == name; });
}

}  // namespace treadle::ir
