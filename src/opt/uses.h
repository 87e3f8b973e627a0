#pragma once
// How often values are used, and by whom.

#include <unordered_map>

#include "ir/graph.h"

namespace treadle::opt {

// In `top` and all regions inside, as results of regions too.
class Uses {
 public:
  explicit Uses(const ir::Region& top) { count(top); }
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

  void count(const ir::Region& region) {
    for (const auto& node : region.nodes) {
      for (const ir::Value* v : node->inputs) uses_[v] = {uses_[v].count + 1, node.get()};
      for (const auto& body : node->regions) count(*body);
    }
    for (const ir::Value* v : region.outputs) uses_[v] = {uses_[v].count + 1, nullptr};
  }
  std::unordered_map<const ir::Value*, Use> uses_;
};

}  // namespace treadle::opt
