#pragma once
// What lies behind a node that cannot be taken as it is.

#include <algorithm>
#include <unordered_set>

#include "ir/graph.h"

namespace treadle::open {

// Values that the nodes behind an obstacle make. What is said of them is not certain.
class Behind {
 public:
  bool contains(const ir::Node& node) const {
    const auto is_behind = [&](const ir::Value* value) { return value && values_.contains(value); };
    if (std::ranges::any_of(node.inputs, is_behind)) return true;
    return std::ranges::any_of(node.regions,
                               [&](const auto& body) { return std::ranges::any_of(ir::captures(*body), is_behind); });
  }
  void add(const ir::Node& node) {
    for (const ir::Value* value : node.outputs) {
      if (value) values_.insert(value);
    }
  }

 private:
  std::unordered_set<const ir::Value*> values_;
};

// Null for values whose rank is not known, and for other values than tensors.
inline const Shape* shape_of(const ir::Value* value) {
  return value && value->type.is_tensor() && value->type.has_shape ? &value->type.shape : nullptr;
}

}  // namespace treadle::open
