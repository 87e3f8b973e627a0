#pragma once
// Copies of nodes of a loop body that run once for all iterations, on stacked values: values with one more leading
// axis, the iterations. Shared by the rewrites that move nodes out of loops (batching.cc, sinking.cc, maps.cc).

#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

#include "op/axes.h"
#include "op/loop_view.h"
#include "opt/builder.h"

namespace treadle::opt {

// Whether a value differs from iteration to iteration; other values are constants or come from outside the loop.
using Varies = std::function<bool(const ir::Value*)>;

bool is_invariant(const ir::Value* v, const ir::Region& body);

// Whether `node`, some inputs of which vary, gives for all iterations at once the results of the single iterations. It
// cannot fail and all its sizes are known, so it may run if there are no iterations. No value over `iterations`
// iterations is too large.
bool runs_stacked(const ir::Node& node, const Varies& varies, const Dim& iterations);

// Whether the node is a product (OpDef::product) of a varying operand with weights that do not vary, deep enough to
// pay: for all iterations at once, weights are read once.
bool is_product_with_weights(const ir::Node& node, const Varies& varies);

// The number of elements of a value of known sizes. Limited to 2^48, which no memory holds, so that sums of counts and
// bytes do not overflow.
int64_t count_of(const ir::Value& v);
inline bool is_single(const ir::Value& v) {
  return v.type.is_concrete() && count_of(v) == 1;
}
inline bool is_single_bool(const ir::Value& v) {
  return v.type.element == ElementType::kBool && is_single(v);
}

// The values of a Scan's body that depend on its scan inputs alone, and the direction in which the loop reads these.
class FromScanInputs {
 public:
  // False if a scan input is not scanned along axis 0.
  bool begin(const LoopView& scan);
  const Dim& iterations() const { return iterations_; }  // unknown without scan inputs
  bool has(const ir::Value* v) const { return v && reverse_.contains(v); }
  bool reverse(const ir::Value* v) const { return reverse_.at(v); }
  void add(const ir::Value* v, bool reverse) { reverse_[v] = reverse; }
  // Whether `node` of `body` reads such values in one direction, no other varying values, and runs for all iterations
  // at once. Then its results are added.
  bool add_results(const ir::Node& node, const ir::Region& body);
  Varies varies() const {
    return [this](const ir::Value* v) { return has(v); };
  }

 private:
  Dim iterations_ = Dim::unknown();
  std::unordered_map<const ir::Value*, bool> reverse_;
};

// Puts nodes that run for all iterations into a region, one after the other.
class StackedNodes {
 public:
  StackedNodes(ir::Graph& graph, ir::Region& region, size_t at, Dim iterations)
      : build_(graph, region, at), iterations_(std::move(iterations)) {}

  // `whole`: [iterations, sizes of `element`...].
  void set(const ir::Value* element, ir::Value* whole) { stacked_[element] = whole; }
  bool has(const ir::Value* element) const { return stacked_.contains(element); }
  ir::Value* whole(const ir::Value* element) const { return stacked_.at(element); }
  const Dim& iterations() const { return iterations_; }
  size_t added() const { return build_.added(); }

  // `node` has left its body. runs_stacked() must be true for it, with the stacked values as the varying ones. Its
  // outputs become stacked values.
  void add(std::unique_ptr<ir::Node> node);
  // Repeats a value that is the same in each iteration; the trip count must be known.
  ir::Value* repeated(ir::Value* v, const std::string& name);

 private:
  void add_widened(std::unique_ptr<ir::Node> node, const Stacked& how);
  void add_merged(std::unique_ptr<ir::Node> node);
  template <class Sizes>
  std::vector<std::pair<const ir::Value*, ir::Value*>> new_outputs(ir::Node& node, Sizes&& sizes);
  ir::Value* operand(const ir::Node& node, size_t i, const WidenContext::Operand& how);
  ir::Value* reshaped(ir::Value* v, const Dim& first, const Dims& rest, const std::string& name);
  Shape with_iterations(const Shape& element) const;

  Builder build_;
  const Dim iterations_;
  std::unordered_map<const ir::Value*, ir::Value*> stacked_;
};

}  // namespace treadle::opt
