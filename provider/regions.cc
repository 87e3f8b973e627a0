#include "regions.h"

#include <algorithm>

#include "types.h"

namespace treadle::provider {

namespace {

class Regions {
 public:
  Regions(const Graph& graph, const Costs& costs) : graph_(graph), inside_(graph.nodes.size()) {
    for (size_t i = 0; i < inside_.size(); ++i) {
      inside_[i] = !is_taken(graph.nodes[i].handle) && costs.saved_by(graph, graph.nodes[i]) >= 0;
    }
    while (leave_crossing()) {
    }
  }

  // Nodes connected by a path are in the same region, unless the path passes a node outside of all regions: a node's
  // number counts how often paths to it have left regions. Nodes are in an order in which they can run.
  std::vector<std::set<size_t>> sets() const {
    std::vector<size_t> number(inside_.size());
    std::vector<std::set<size_t>> found;
    for (size_t i = 0; i < inside_.size(); ++i) {
      for (const size_t before : nodes_before(i)) {
        number[i] = std::max(number[i], number[before] + (inside_[before] && !inside_[i] ? 1 : 0));
      }
      if (!inside_[i]) continue;
      if (found.size() <= number[i]) found.resize(number[i] + 1);
      found[number[i]].insert(i);
    }
    std::erase_if(found, [](const std::set<size_t>& region) { return region.empty(); });
    return found;
  }

 private:
  // Removes nodes whose values would cross a border although they cannot; false: there was none.
  bool leave_crossing() {
    bool left = false;
    for (size_t i = 0; i < inside_.size(); ++i) {
      if (!inside_[i] || stays_inside(graph_.nodes[i])) continue;
      inside_[i] = false;
      left = true;
    }
    return left;
  }

  bool stays_inside(const Node& node) const {
    for (const Values* used : {&node.inputs, &node.captured}) {
      for (const OrtValueInfo* value : *used) {
        if (!value || can_cross(type_of(value)) || is_constant(value)) continue;
        const auto producer = graph_.producers.find(name_of(value));
        if (producer == graph_.producers.end() || !inside_[producer->second]) return false;
      }
    }
    return std::ranges::all_of(node.outputs, [&](const OrtValueInfo* value) {
      return !value || can_cross(type_of(value)) || stays_inside(name_of(value));
    });
  }
  bool stays_inside(const std::string& output) const {
    const auto users = graph_.consumers.find(output);
    return !graph_.outputs.contains(output) &&
           (users == graph_.consumers.end() ||
            std::ranges::all_of(users->second, [&](size_t user) { return inside_[user]; }));
  }

  std::set<size_t> nodes_before(size_t node) const {
    std::set<size_t> before;
    for (const Values* used : {&graph_.nodes[node].inputs, &graph_.nodes[node].captured}) {
      for (const OrtValueInfo* value : *used) {
        const auto producer = graph_.producers.find(name_of(value));
        if (producer != graph_.producers.end()) before.insert(producer->second);
      }
    }
    return before;
  }

  const Graph& graph_;
  std::vector<bool> inside_;  // nodes that are in a region
};

}  // namespace

std::vector<std::set<size_t>> regions_of(const Graph& graph, const Costs& costs) {
  return Regions(graph, costs).sets();
}

}  // namespace treadle::provider
