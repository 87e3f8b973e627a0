#pragma once
// The names that are visible at a place of a model, with those of the graphs around it.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/name_map.h"

namespace treadle {

enum class DefinedBy : uint8_t { kNothing, kInput, kInitializer, kNode };

struct Definition {
  DefinedBy by = DefinedBy::kNothing;
  bool used = false;
  int depth = -1;               // of the scope that it belongs to
  uint32_t number = 0;          // in the order of definition
  const void* proto = nullptr;  // ValueInfoProto, TensorProto or NodeProto, as `by` says; null for a function's inputs

  bool exists() const { return by != DefinedBy::kNothing; }
};

// One hash table for all scopes, with a record of what a scope has hidden: looking up costs the same however deep the
// bodies are nested. References that find() returns are good until the next call.
class NameTable {
 public:
  // Makes room for that many names at once.
  void reserve(size_t names);
  void enter();
  // Everything that the innermost scope has defined is forgotten; fn(name, definition) sees each first.
  template <class Fn>
  void leave(Fn&& fn) {
    const Mark mark = marks_.back();
    for (size_t i = mark.defined; i < defined_.size(); ++i) fn(names_.name(defined_[i]), names_.value(defined_[i]));
    drop(mark);
  }
  int depth() const { return static_cast<int>(marks_.size()) - 1; }

  // What `name` means here; a definition that does not exist() when it means nothing.
  Definition& find(std::string_view name) { return names_.value(names_.emplace(name, {}).first); }
  // Gives `name` a new meaning in the innermost scope; returns what it meant before.
  Definition define(std::string_view name, DefinedBy by, const void* proto);

  uint32_t definitions() const { return definitions_; }  // so far; their numbers are below

  // fn(name, definition) for everything visible.
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
  std::vector<Hidden> hidden_;     // what those meant before, if they meant something
  std::vector<Mark> marks_;        // where scopes begin
  uint32_t definitions_ = 0;
};

}  // namespace treadle
