#include "model/node_order.h"

#include <unordered_map>
#include <unordered_set>

namespace treadle::model {

namespace {

using UseName = std::function<void(std::string_view)>;

void use_names_of_body(const wire::GraphProto& body, const UseName& fn) {
  std::unordered_set<std::string_view> own;
  for (const wire::ValueInfoProto& input : body.inputs) own.insert(input.name);
  for (const wire::TensorProto& tensor : body.initializers) own.insert(tensor.name);
  for (const wire::SparseTensorProto& tensor : body.sparse_initializers) own.insert(tensor.values.name);
  for (const wire::NodeProto& node : body.nodes) own.insert(node.outputs.begin(), node.outputs.end());
  const UseName use_outer = [&](std::string_view name) {
    if (!own.contains(name)) fn(name);
  };
  for (const wire::NodeProto& node : body.nodes) for_each_used_name(node, use_outer);
  for (const wire::ValueInfoProto& output : body.outputs) use_outer(output.name);
}

// Depth-first search; a node is finished after all nodes that it needs.
class Sorter {
 public:
  explicit Sorter(const wire::List<wire::NodeProto>& nodes) : nodes_(nodes), met_(nodes.size(), false) {
    order_.reserve(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (const std::string_view output : nodes[i].outputs) {
        if (!output.empty()) makers_.emplace(output, static_cast<uint32_t>(i));
      }
    }
  }

  std::vector<uint32_t> sort() && {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      enter(i);
      while (!open_.empty()) step();
    }
    return std::move(order_);
  }

 private:
  struct Visit {
    uint32_t node;
    std::vector<uint32_t> needed;
    size_t next = 0;
  };

  void enter(uint32_t node) {
    if (met_[node]) return;
    met_[node] = true;
    Visit& visit = open_.emplace_back(Visit{node, {}});
    for_each_used_name(nodes_[node], [&](std::string_view name) {
      if (const auto maker = makers_.find(name); maker != makers_.end()) visit.needed.push_back(maker->second);
    });
  }

  void step() {
    Visit& visit = open_.back();
    if (visit.next < visit.needed.size()) return enter(visit.needed[visit.next++]);
    order_.push_back(visit.node);
    open_.pop_back();
  }

  const wire::List<wire::NodeProto>& nodes_;
  std::unordered_map<std::string_view, uint32_t> makers_;
  std::vector<bool> met_;
  std::vector<Visit> open_;
  std::vector<uint32_t> order_;
};

}  // namespace

void for_each_used_name(const wire::NodeProto& node, const UseName& fn) {
  for (const std::string_view input : node.inputs) {
    if (!input.empty()) fn(input);
  }
  for (const wire::AttributeProto& attribute : node.attributes) {
    if (attribute.g) use_names_of_body(*attribute.g, fn);
    for (const wire::GraphProto& body : attribute.graphs) use_names_of_body(body, fn);
  }
}

std::vector<uint32_t> sorted_order(const wire::List<wire::NodeProto>& nodes) {
  return Sorter(nodes).sort();
}

}  // namespace treadle::model
