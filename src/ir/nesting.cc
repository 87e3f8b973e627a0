#include "ir/nesting.h"

#include <algorithm>

#include "base/stack.h"

namespace treadle::ir {

size_t nesting(const Region& region) {
  size_t deepest = 0;
  std::vector<std::pair<const Region*, size_t>> left{{&region, 0}};
  while (!left.empty()) {
    const auto [at, depth] = left.back();
    left.pop_back();
    deepest = std::max(deepest, depth);
    for (const auto& node : at->nodes) {
      for (const auto& body : node->regions) left.emplace_back(body.get(), depth + 1);
    }
  }
  return deepest;
}

Status check_stack(const Graph& graph) {
  return treadle::check_stack(nesting(graph.top()));
}

size_t constant_bytes(const Graph& graph) {
  constexpr size_t kNodeBytes = 64;
  const uint32_t walk = new_walk();
  size_t bytes = 0;
  for_each_node(graph.top(), [&](const Node& node) {
    bytes += kNodeBytes;
    for (const Value* v : node.inputs) {
      if (!v || !v->is_constant() || v->note.walk == walk) continue;
      v->note.walk = walk;
      bytes += v->constant.byte_size();
    }
  });
  for (const Tensor& tensor : graph.input_defaults) bytes += tensor.defined() ? tensor.byte_size() : 0;
  return bytes;
}

}  // namespace treadle::ir
