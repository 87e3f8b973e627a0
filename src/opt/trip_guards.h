#pragma once
// Builds nodes in front of a loop that check, when a run reaches the loop, what CountedLoop::Trust::kGuards assumes
// about the loop.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "opt/builder.h"
#include "opt/trip_positions.h"

namespace treadle::opt {

class TripGuards {
 public:
  // The loop stands at `at` of `region`.
  TripGuards(ir::Graph& graph, ir::Region& region, size_t at, const CountedLoop& loop, std::string name)
      : build_(graph, region, at), loop_(loop), name_(std::move(name)) {}

  // One bool: the loop makes loop.trips() trips, and each of `picks` is inside of its data in all of them. Null: some
  // never is.
  ir::Value* conditions(std::span<const Picked> picks);

  // What conditions() has made, int64 [1].
  ir::Value* value(const Sum& sum);

  // How many nodes were put before the loop.
  size_t added() const { return build_.added(); }

 private:
  ir::Value* call(std::string_view op, std::initializer_list<ir::Value*> inputs, ElementType result,
                  std::initializer_list<ir::Attribute> attributes = {});
  ir::Value* constant(int64_t n);
  ir::Value* as_int64(ir::Value* v);
  ir::Value* single(ir::Value* v);
  ir::Value* size_of(const Picked& picked);
  // a <= b; false: never.
  bool require_order(const Sum& a, const Sum& b);
  void require_small(const Sum& sum);
  void require(ir::Value* condition);

  Builder build_;
  const CountedLoop& loop_;
  const std::string name_;
  std::vector<std::pair<Sum, ir::Value*>> values_;
  std::vector<const ir::Value*> small_;  // terms that are looked at
  ir::Value* all_ = nullptr;
};

}  // namespace treadle::opt
