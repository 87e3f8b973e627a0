#pragma once
// Builds nodes in front of a loop that check, when a run reaches the loop, the facts that CountedLoop::Trust::kGuards
// assumes.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "opt/builder.h"
#include "opt/loop_positions.h"

namespace treadle::opt {

class LoopGuards {
 public:
  // The loop is at `at` of `region`.
  LoopGuards(ir::Graph& graph, ir::Region& region, size_t at, const CountedLoop& loop, std::string name)
      : build_(graph, region, at), loop_(loop), name_(std::move(name)) {}

  // A scalar bool: the loop makes loop.iterations() iterations, and each of `picks` is inside of its data in all of
  // them. Null if a pick can never be inside.
  ir::Value* conditions(std::span<const Picked> picks);

  // A value, int64 [1], that conditions() made.
  ir::Value* value(const Sum& sum);

  // The number of nodes put before the loop.
  size_t added() const { return build_.added(); }

 private:
  ir::Value* call(std::string_view op, std::initializer_list<ir::Value*> inputs, ElementType result,
                  std::initializer_list<ir::Attribute> attributes = {});
  ir::Value* constant(int64_t n);
  ir::Value* as_int64(ir::Value* v);
  ir::Value* single(ir::Value* v);
  ir::Value* size_of(const Picked& picked);
  // Requires a <= b; false if it can never hold.
  bool require_order(const Sum& a, const Sum& b);
  void require_small(const Sum& sum);
  void require(ir::Value* condition);

  Builder build_;
  const CountedLoop& loop_;
  const std::string name_;
  std::vector<std::pair<Sum, ir::Value*>> values_;
  std::vector<const ir::Value*> small_;  // terms with a check already
  ir::Value* all_ = nullptr;
};

}  // namespace treadle::opt
