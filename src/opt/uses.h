#pragma once
// How often values are used.

#include <unordered_map>

#include "ir/graph.h"

namespace treadle::opt {

// In `top` and all regions inside, as results of regions too.
class Uses {
 public:
  explicit Uses(const ir::Region& top) { count(top); }
  bool once(const ir::Value* v) const { return count_.at(v) == 1; }

 private:
  void count(const ir::Region& region) {
    for (const auto& node : region.nodes) {
      for (const ir::Value* v : node->inputs) ++count_[v];
      for (const auto& body : node->regions) count(*body);
    }
    for (const ir::Value* v : region.outputs) ++count_[v];
  }
  std::unordered_map<const ir::Value*, int> count_;
};

}  // namespace treadle::opt
