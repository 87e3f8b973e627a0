#include "check/name_table.h"

#include <utility>

namespace treadle {

void NameTable::reserve(size_t names) {
  names_.reserve(names);
  defined_.reserve(names);
}

void NameTable::enter() {
  marks_.push_back({defined_.size(), hidden_.size()});
}

void NameTable::drop(Mark mark) {
  for (size_t i = mark.defined; i < defined_.size(); ++i) names_.value(defined_[i]) = {};
  while (hidden_.size() > mark.hidden) {
    names_.value(hidden_.back().name) = hidden_.back().before;
    hidden_.pop_back();
  }
  defined_.resize(mark.defined);
  marks_.pop_back();
}

Definition NameTable::define(std::string_view name, DefinedBy by, const void* proto) {
  const Definition made{by, false, depth(), definitions_++, proto};
  const auto [index, fresh] = names_.emplace(name, made);
  defined_.push_back(index);
  if (fresh) return {};
  Definition& definition = names_.value(index);
  if (definition.exists()) hidden_.push_back({index, definition});
  return std::exchange(definition, made);
}

}  // namespace treadle
