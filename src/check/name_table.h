#pragma once
// The names that are visible at a place of a model, including those of the graphs around it.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/name_map.h"

namespace treadle {

enum class DefinedBy : uint8_t { kNothing, kInput, kInitializer, kNode };

struct Definition {
  DefinedBy by = DefinedBy::kNothing;
  bool used = false;
  int depth = -1;               // depth of the scope that defines it
  uint32_t number = 0;          // in order of definition
  const void* proto = nullptr;  // ValueInfoProto, TensorProto or NodeProto, according to `by`; null for a function's
                                // inputs

  bool exists() const { return by != DefinedBy::kNothing; }
};

// One hash table for all scopes, and a record of the definitions that each scope has hidden. So the cost of a look-up
// does not depend on the depth of nesting. References from find() are valid until the next call.
class NameTable {
 public:
  // Makes room for that many names at once.
  void reserve(size_t names);
  void enter();
  // Removes all definitions of the innermost scope; calls fn(name, definition) for each before.
  template <class Fn>
  void leave(Fn&& fn) {
    const Mark mark = marks_.back();
    for (size_t i = mark.defined; i < defined_.size(); ++i) fn(names_.name(defined_[i]), names_.value(defined_[i]));
    drop(mark);
  }
  int depth() const { return static_cast<int>(marks_.size()) - 1; }

  // The definition of `name`; if there is none, one that does not exist().
  Definition& find(std::string_view name) { return names_.value(names_.emplace(name, {}).first); }
  // Defines `name` in the innermost scope, and returns its previous definition.
  Definition define(std::string_view name, DefinedBy by, const void* proto);

  uint32_t definitions() const { return definitions_; }  // so far; their numbers are below this

  // Calls fn(name, definition) for all visible names.
  template <class Fn>
  void for_each(Fn&& fn) const {
    for (const auto& entry : names_.entries()) {
      if (entry.value.exists()) fn(entry.name, entry.value);
    }
  }

 private:
  struct Hidden {
    uint32_t name;
    Definition before;
  };
  struct Mark {
    size_t defined, hidden;
  };

  void drop(Mark mark);

  NameMap<Definition> names_;
  std::vector<uint32_t> defined_;  // names, scope by scope
  std::vector<Hidden> hidden_;     // the previous definitions of those names that had one
  std::vector<Mark> marks_;        // beginnings of scopes
  uint32_t definitions_ = 0;
};

}  // namespace treadle
