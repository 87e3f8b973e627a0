#pragma once
// The number of uses of values, and their readers.

#include "base/pointer_map.h"
#include "ir/graph.h"

namespace treadle::opt {

// Calls fn(value, node) for every operand of every node in `top` and its nested regions, and fn(value, nullptr) for
// every result of a nested region. A value that is left out is null.
template <class Fn>
void for_each_use_inside(const ir::Region& top, const Fn& fn) {
  ir::for_each_node(top, [&](const ir::Node& node) {
    for (const ir::Value* v : node.inputs) fn(v, &node);
    for (const auto& body : node.regions) {
      for (const ir::Value* v : body->outputs) fn(v, nullptr);
    }
  });
}

// The same, with the results of `top`.
template <class Fn>
void for_each_use(const ir::Region& top, const Fn& fn) {
  for (const ir::Value* v : top.outputs) fn(v, nullptr);
  for_each_use_inside(top, fn);
}

class ValueSet {
 public:
  void insert(const ir::Value* v) { values_.emplace(v); }
  bool contains(const ir::Value* v) const { return values_.contains(v); }

 private:
  struct Nothing {};
  PointerMap<ir::Value, Nothing> values_;
};

inline ValueSet values_read(const ir::Region& top) {
  ValueSet read;
  for_each_use(top, [&](const ir::Value* v, const ir::Node*) {
    if (v) read.insert(v);
  });
  return read;
}

// Whether `which(node)` is true for a node of `top` or of a nested region. Passes ask this before they count uses.
template <class Which>
bool has_node(const ir::Region& top, const Which& which) {
  for (const auto& node : top.nodes) {
    if (which(*node)) return true;
    for (const auto& body : node->regions) {
      if (has_node(*body, which)) return true;
    }
  }
  return false;
}

// Counts uses in `top` and all nested regions, as results of regions too.
class Uses {
 public:
  explicit Uses(const ir::Region& top) {
    for_each_use(top, [this](const ir::Value* v, const ir::Node* node) {
      if (!v) return;
      Use& use = *uses_.emplace(v).first;
      ++use.count;
      use.node = node;
    });
  }
  int count(const ir::Value* v) const {
    const Use* found = uses_.find(v);
    return found ? found->count : 0;
  }
  bool once(const ir::Value* v) const { return count(v) == 1; }
  // The only reader of the value, if it reads it once; otherwise null.
  const ir::Node* reader(const ir::Value* v) const {
    const Use* found = uses_.find(v);
    return found && found->count == 1 ? found->node : nullptr;
  }

 private:
  struct Use {
    int count = 0;
    const ir::Node* node = nullptr;  // the last reader found; null: the value is a result of a region
  };

  PointerMap<ir::Value, Use> uses_;
};

}  // namespace treadle::opt
