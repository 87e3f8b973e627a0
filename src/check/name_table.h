#pragma once
// The names that are visible at a place of a model, with those of the graphs around it.

#include <cstdint>
#include <string_view>
#include <vector>

namespace treadle {

// Names in files are chosen by whoever wrote the file: tables seed the hash with a number of the process.
uint64_t hash_name(std::string_view name, uint64_t seed);
uint64_t process_seed();

enum class DefinedBy : uint8_t { kNothing, kInput, kInitializer, kNode };

struct Definition {
  DefinedBy by = DefinedBy::kNothing;
  bool used = false;
  int depth = -1;               // of the scope that it belongs to
  const void* proto = nullptr;  // ValueInfoProto, TensorProto or NodeProto, as `by` says; null for a function's inputs

  bool exists() const { return by != DefinedBy::kNothing; }
};

// One hash table for all scopes, with a record of what a scope has hidden: looking up costs the same however deep the
// bodies are nested. References that find() returns are good until the next call.
class NameTable {
 public:
  NameTable();

  // Makes room for that many names at once.
  void reserve(size_t names);
  void enter();
  // Everything that the innermost scope has defined is forgotten; fn(name, definition) sees each first.
  template <class Fn>
  void leave(Fn&& fn) {
    const size_t mark = marks_.back();
    for (size_t i = mark; i < undo_.size(); ++i) fn(entries_[undo_[i].entry].name, entries_[undo_[i].entry].definition);
    drop(mark);
  }
  int depth() const { return static_cast<int>(marks_.size()) - 1; }

  // What `name` means here; a definition that does not exist() when it means nothing.
  Definition& find(std::string_view name) { return entries_[entry_of(name)].definition; }
  // Makes `name` mean `definition` in the innermost scope; returns what it meant before.
  Definition define(std::string_view name, DefinedBy by, const void* proto);

  // fn(name, definition) for everything visible.
  template <class Fn>
  void for_each(Fn&& fn) const {
    for (const Entry& entry : entries_) {
      if (entry.definition.exists()) fn(entry.name, entry.definition);
    }
  }

 private:
  struct Entry {
    std::string_view name;
    uint64_t hash;
    Definition definition;
  };
  struct Undo {
    uint32_t entry;
    Definition before;
  };

  uint32_t entry_of(std::string_view name);
  void resize(size_t slots);
  void drop(size_t mark);

  uint64_t seed_ = process_seed();
  std::vector<uint32_t> slots_;  // 1 + index of an entry; 0: free. Its size is a power of two
  std::vector<Entry> entries_;
  std::vector<Undo> undo_;
  std::vector<size_t> marks_;
};

}  // namespace treadle
