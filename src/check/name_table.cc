#include "check/name_table.h"

namespace treadle {

void NameTable::reserve(size_t names) {
  names_.reserve(names);
  undo_.reserve(names);
}

void NameTable::enter() {
  marks_.push_back(undo_.size());
}

void NameTable::drop(size_t mark) {
  while (undo_.size() > mark) {
    names_.value(undo_.back().name) = undo_.back().before;
    undo_.pop_back();
  }
  marks_.pop_back();
}

Definition NameTable::define(std::string_view name, DefinedBy by, const void* proto) {
  const uint32_t index = names_.emplace(name, {}).first;
  Definition& definition = names_.value(index);
  const Definition before = definition;
  undo_.push_back({index, before});
  definition = {by, false, depth(), definitions_++, proto};
  return before;
}

}  // namespace treadle
