#include "open/agreement.h"

#include "open/behind.h"

namespace treadle::open {

namespace {

class Comparison {
 public:
  Comparison(const Reading& old, const Reading& other, const Openings& openings, int64_t times)
      : old_(old), other_(other), openings_(openings), times_(times) {}

  void walk(const ir::Region& now, const ir::Region& old, const ir::Region& other) {
    for (size_t i = 0; i < now.nodes.size(); ++i) {
      const ir::Node& node = *now.nodes[i];
      if (behind_.contains(node)) {
        behind_.add(node);
        continue;
      }
      const size_t before = obstacles.size();
      for (size_t r = 0; r < node.regions.size(); ++r) {
        walk(*node.regions[r], *old.nodes[i]->regions[r], *other.nodes[i]->regions[r]);
      }
      if (obstacles.size() == before) visit(node, *old.nodes[i], *other.nodes[i]);
      if (obstacles.size() > before) behind_.add(node);
    }
  }

  std::vector<Obstacle> obstacles;

 private:
  void visit(const ir::Node& now, const ir::Node& old, const ir::Node& other) {
    const Status* failure = other_.failure(other);
    if (failure && !old_.failure(old)) return block(now, failure->message());
    for (size_t i = 0; i < now.outputs.size(); ++i) {
      const Shape *wanted = shape_of(now.outputs[i]), *found = shape_of(other.outputs[i]);
      if (!wanted || !found) continue;
      const Shape sizes = [&] {
        Shape all;
        for (const Dim& dim : *wanted) all.push_back(openings_.at(dim, times_));
        return all;
      }();
      for (size_t axis = 0; axis < sizes.size(); ++axis) {
        const bool differs = found->size() != sizes.size() || (sizes[axis].is_known() && (*found)[axis].is_known() &&
                                                               !same(sizes[axis], (*found)[axis]));
        if (!differs) continue;
        return block(now, fmt::format("output {} has sizes {}, expected {}", i, to_string(*found), to_string(sizes)));
      }
    }
  }

  void block(const ir::Node& node, std::string why) {
    obstacles.push_back({std::string(node.name.view()), std::string(node.op->name),
                         fmt::format("at {} times the size, {}", times_, why)});
  }

  const Reading &old_, &other_;
  const Openings& openings_;
  const int64_t times_;
  Behind behind_;
};

class OpenedValues {
 public:
  void walk(const ir::Region& region) {
    for (const auto& node : region.nodes) {
      const auto is_opened = [&](const ir::Value* value) { return value && values.contains(value); };
      bool opened = std::ranges::any_of(node->inputs, is_opened);
      for (const auto& body : node->regions) opened |= std::ranges::any_of(ir::captures(*body), is_opened);
      for (const auto& body : node->regions) {
        if (opened) values.insert(body->inputs.begin(), body->inputs.end());
        walk(*body);
      }
      if (!opened) continue;
      for (const ir::Value* output : node->outputs) {
        if (output) values.insert(output);
      }
    }
  }

  std::unordered_set<const ir::Value*> values;
};

}  // namespace

std::vector<Obstacle> differences(const Reading& now, const Reading& old, const Reading& other,
                                  const Openings& openings, int64_t times) {
  Comparison comparison(old, other, openings, times);
  comparison.walk(now.top(), old.top(), other.top());
  return std::move(comparison.obstacles);
}

std::unordered_set<const ir::Value*> opened_values(const Reading& now, const Openings& openings) {
  OpenedValues opened;
  for (const ir::Value* input : now.top().inputs) {
    if (const Shape* shape = shape_of(input); shape && openings.opens(*shape)) opened.values.insert(input);
  }
  opened.walk(now.top());
  return std::move(opened.values);
}

}  // namespace treadle::open
