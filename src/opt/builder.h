#pragma once
// Puts nodes into a region, one after the other.

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace treadle::opt {

// Takes `region.nodes[at]` out of the region.
std::unique_ptr<ir::Node> take_out(ir::Region& region, size_t at);

class Builder {
 public:
  // Inserts before the node at `at`. `whole`: the node that the new nodes replace; errors name that node (op/place.h).
  Builder(ir::Graph& graph, ir::Region& region, size_t at, const ir::NodeInfo* whole = nullptr)
      : graph_(graph), region_(region), first_(at), at_(at), whole_(whole) {}

  size_t at() const { return at_; }  // position of the next node
  size_t added() const { return at_ - first_; }
  ir::Graph& graph() { return graph_; }

  // Adds a node called `name` of the newest version of `op`.
  ir::Node* node(std::string_view op, std::string_view name, std::initializer_list<ir::Attribute> attributes = {});
  // Adds such a node; returns its only result, also called `name`.
  ir::Value* call(std::string_view op, std::span<ir::Value* const> inputs, Type type, std::string_view name,
                  std::initializer_list<ir::Attribute> attributes = {});
  ir::Value* call(std::string_view op, std::initializer_list<ir::Value*> inputs, Type type, std::string_view name,
                  std::initializer_list<ir::Attribute> attributes = {}) {
    return call(op, std::span(inputs.begin(), inputs.size()), std::move(type), name, attributes);
  }
  ir::Value* int64s(std::initializer_list<int64_t> numbers, std::string_view name);  // a constant
  ir::Value* int64s(std::span<const int64_t> numbers, std::string_view name);

  // Moves nodes of another region here, with their results.
  void adopt(std::unique_ptr<ir::Node> node);
  void adopt_all(ir::Region& from);

 private:
  ir::Graph& graph_;
  ir::Region& region_;
  const size_t first_;
  size_t at_;
  const ir::NodeInfo* whole_;
};

}  // namespace treadle::opt
