#include "ir/nesting.h"

#include <algorithm>

#include "base/name_map.h"
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

namespace {

uint64_t fingerprint_of(const Tensor& tensor) {
  constexpr size_t kSample = 256;
  const auto* dims = reinterpret_cast<const char*>(tensor.dims().data());
  uint64_t hash = hash_name({dims, tensor.dims().size() * sizeof(int64_t)}, static_cast<uint64_t>(tensor.type()));
  if (is_string(tensor.type())) {
    for (int64_t i = 0; i < tensor.element_count(); ++i) hash = hash_name(tensor.data<String>()[i], hash);
    return hash;
  }
  const std::string_view bytes(tensor.data<char>(), tensor.byte_size());
  hash = hash_name(bytes.substr(0, kSample), hash);
  return bytes.size() > kSample ? hash_name(bytes.substr(std::max(kSample, bytes.size() - kSample)), hash) : hash;
}

}  // namespace

uint64_t fingerprint(const Graph& graph) {
  const uint32_t walk = new_walk();
  uint64_t sum = 0;
  for_each_node(graph.top(), [&](const Node& node) {
    for (const Value* v : node.inputs) {
      if (!v || !v->is_constant() || v->note.walk == walk) continue;
      v->note.walk = walk;
      sum += fingerprint_of(v->constant);
    }
  });
  for (const Tensor& tensor : graph.input_defaults) sum += tensor.defined() ? fingerprint_of(tensor) : 0;
  return sum;
}

}  // namespace treadle::ir
