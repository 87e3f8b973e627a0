#pragma once
// How often values are used, and by whom.

#include <unordered_map>
#include <unordered_set>

#include "ir/graph.h"

namespace treadle::opt {

// fn(value, node) for every operand of every node in `top` and all regions inside, and fn(value, nullptr) for every
// result of a region. Values that are left out are null.
template <class Fn>
void for_each_use(const ir::Region& top, const Fn& fn) {
  for (const ir::Value* v : top.outputs) fn(v, nullptr);
  ir::for_each_node(top, [&](const ir::Node& node) {
    for (const ir::Value* v : node.inputs) fn(v, &node);
    for (const auto& body : node.regions) {
      for (const ir::Value* v : body->outputs) fn(v, nullptr);
    }
  });
}

inline std::unordered_set<const ir::Value*> values_read(const ir::Region& top) {
  std::unordered_set<const ir::Value*> read;
  for_each_use(top, [&](const ir::Value* v, const ir::Node*) { read.insert(v); });
  return read;
}

// In `top` and all regions inside, as results of regions too.
class Uses {
 public:
  explicit Uses(const ir::Region& top) {
    for_each_use(top, [this](const ir::Value* v, const ir::Node* node) { uses_[v] = {uses_[v].count + 1, node}; });
  }
  bool once(const ir::Value* v) const { return uses_.at(v).count == 1; }
  // The node that reads it where nothing else does, once; else null.
  const ir::Node* reader(const ir::Value* v) const {
    const auto found = uses_.find(v);
    return found != uses_.end() && found->second.count == 1 ? found->second.node : nullptr;
  }

 private:
  struct Use {
    int count = 0;
    const ir::Node* node = nullptr;  // the last one; null: it is a result of a region
  };

  std::unordered_map<const ir::Value*, Use> uses_;
};

}  // namespace treadle::opt
