#pragma once
// The base class of passes that replace one node by simpler nodes.

#include <initializer_list>
#include <span>
#include <unordered_map>
#include <vector>

#include "opt/builder.h"
#include "opt/remarks.h"

namespace treadle::opt {

// The sizes of a tensor if all are known and none is 0; otherwise nullopt.
std::optional<Dims> sizes_of(const ir::Value* v);

class Restater {
 public:
  Restater(ir::Graph& graph, Remarks* remarks) : graph_(graph), remarks_(remarks) {}
  virtual ~Restater() = default;

  // Visits all nodes of the graph; nodes of a body come before the node that owns the body.
  void run();

 protected:
  // Returns the value that replaces the node's output 0, made by the functions below. Returns null, and makes nothing,
  // if the node stays. `in_loop`: the node is in a loop, at any depth.
  virtual ir::Value* restate(const ir::Node& node, bool in_loop) = 0;

  ir::Graph& graph() { return graph_; }
  // Input i of the node, with earlier replacements; null if it is absent.
  ir::Value* input(size_t i) const;
  ElementType element() const { return whole_->outputs[0]->type.element; }
  Type tensor(const Dims& dims) const;  // with the element type of the node's result

  ir::Value* call(std::string_view op, std::initializer_list<ir::Value*> inputs, Type type,
                  std::initializer_list<ir::Attribute> attributes = {});
  ir::Value* constant(std::span<const int64_t> numbers);
  ir::Value* reshape(ir::Value* v, const Dims& dims);
  // `op`: ReduceSum, ReduceMax, ...; axes count from 0.
  ir::Value* reduce(std::string_view op, ir::Value* v, std::span<const int64_t> axes, bool keep);

 private:
  size_t visit(ir::Region& region, size_t at);

  ir::Graph& graph_;
  Remarks* remarks_;
  Builder* build_ = nullptr;         // inserts in front of the node that is replaced
  const ir::Node* whole_ = nullptr;  // the node that is replaced
  size_t parts_ = 0;
  std::vector<std::string> made_;  // operators of the replacing nodes
  std::unordered_map<ir::Value*, ir::Value*> replaced_;
};

}  // namespace treadle::opt
