#pragma once
// The base class of passes that replace one node by simpler nodes.

#include <initializer_list>
#include <span>
#include <unordered_map>
#include <vector>

#include "opt/builder.h"
#include "opt/remarks.h"

namespace treadle::opt {

// Sizes of a tensor whose sizes are all known and none of them 0; nullopt for others.
std::optional<Dims> sizes_of(const ir::Value* v);

class Restater {
 public:
  Restater(ir::Graph& graph, Remarks* remarks) : graph_(graph), remarks_(remarks) {}
  virtual ~Restater() = default;

  // All nodes of the graph, those of bodies before the node that they belong to.
  void run();

 protected:
  // What takes the place of the node's output 0, made by the functions below; null, and nothing made, where the node
  // stays. `in_loop`: it stands in a loop, at any depth.
  virtual ir::Value* restate(const ir::Node& node, bool in_loop) = 0;

  ir::Graph& graph() { return graph_; }
  // What input i of the node is by now; null where it is absent.
  ir::Value* input(size_t i) const;
  ElementType element() const { return whole_->outputs[0]->type.element; }
  Type tensor(const Dims& dims) const;  // of the element type of the node's result

  ir::Value* call(std::string_view op, std::initializer_list<ir::Value*> inputs, Type type,
                  std::initializer_list<ir::Attribute> attributes = {});
  ir::Value* constant(std::span<const int64_t> numbers);
  ir::Value* reshape(ir::Value* v, const Dims& dims);
  // `op`: ReduceSum, ReduceMax, ...; axes from 0 on.
  ir::Value* reduce(std::string_view op, ir::Value* v, std::span<const int64_t> axes, bool keep);

 private:
  size_t visit(ir::Region& region, size_t at);

  ir::Graph& graph_;
  Remarks* remarks_;
  Builder* build_ = nullptr;         // in front of what is restated
  const ir::Node* whole_ = nullptr;  // what is restated
  size_t parts_ = 0;
  std::vector<std::string> made_;  // operators that take its place
  std::unordered_map<ir::Value*, ir::Value*> replaced_;
};

}  // namespace treadle::opt
