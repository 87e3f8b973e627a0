#pragma once
// Where the axes of a node's operands go in its results, and how a node runs over one more leading axis: what each
// operator says in its record (OpDef::axes, OpDef::widen). Loops that run at once, streams, batches and pipelines ask.

#include <functional>
#include <optional>
#include <unordered_map>

#include "ir/graph.h"

namespace treadle {

inline constexpr int64_t kNoAxis = -1;

// A valid axis of `rank` axes, which models count from either end, as a position from the front (normalize_axis()
// checks).
inline int64_t from_front(int64_t axis, int64_t rank) {
  return axis < 0 ? axis + rank : axis;
}

// Values that run along one axis (time, the batch), and which of their axes it is. Values that are not in here do not.
using AxisMap = std::unordered_map<const ir::Value*, int64_t>;

// Puts the outputs of `node` into `axes`, whose inputs (and what its bodies capture) are in there already, where the
// node treats every position along the axis alike and on its own: then a part of the axis gives that part of the
// results. Wants types. Errors say what in the node looks along the axis, as the end of a sentence: "its softmax runs
// along axis 1".
Status carry_axis(const ir::Node& node, AxisMap& axes);
// The nodes of a body, whose inputs are in `axes` already.
Status carry_axis(const ir::Region& region, AxisMap& axes);

// The axis of `out` that is axis `axis` of `in` when elements keep their order: of the same size, with as many elements
// before and behind it. kNoAxis: none.
int64_t same_axis(const Shape& in, int64_t axis, const Shape& out);

// The contents of an integer input that is a constant; nullopt where it is left out or not known.
std::optional<std::vector<int64_t>> constant_ints(const ir::Node& node, size_t input);
// Axes that some versions of an operator take as an attribute and others as an input; nullopt where they are not known.
// None given: empty.
std::optional<std::vector<int64_t>> constant_axes(const ir::Node& node, size_t input, const char* attribute = "axes");

// ---------------------------------------------------------------------------------------------------------------------

// What both kinds of rules ask of their node. Axes are counted from the front.
class NodeAxes {
 public:
  const ir::Node& node() const { return node_; }
  int version() const;
  size_t inputs() const { return node_.inputs.size(); }
  bool present(size_t i) const { return i < inputs() && node_.inputs[i]; }
  int64_t rank(size_t i) const { return node_.inputs[i]->type.rank(); }
  int64_t out_rank(size_t i = 0) const { return node_.outputs[i]->type.rank(); }
  // Whether input i is left out or one element, which goes to all others.
  bool is_single(size_t i) const;

 protected:
  explicit NodeAxes(const ir::Node& node) : node_(node) {}

  const ir::Node& node_;
};

// What a rule (OpDef::axes) works with: the axis of each input, for which it says the axis of each output.
class AxisContext : public NodeAxes {
 public:
  AxisContext(const ir::Node& node, AxisMap& axes);

  const ir::Attributes& attributes() const { return node_.attributes; }
  int64_t in(size_t i) const { return i < in_.size() ? in_[i] : kNoAxis; }
  bool runs_along(size_t i) const { return in(i) != kNoAxis; }
  bool only_runs_along(size_t input) const;
  const Type& type(size_t i) const { return node_.inputs[i]->type; }
  const Dim& size(size_t i, int64_t axis) const { return type(i).shape[static_cast<size_t>(axis)]; }
  const Shape& out_shape(size_t i = 0) const { return node_.outputs[i]->type.shape; }
  // The attribute `name`, or `otherwise`, as a position among `rank` axes.
  int64_t axis(int64_t rank, int64_t otherwise, const char* name = "axis") const;

  Status give(size_t output, int64_t axis);
  Status give_all(int64_t axis);
  // All values, for operators with bodies.
  AxisMap& axes() { return axes_; }

 private:
  AxisMap& axes_;
  InlineVector<int64_t, 8> in_;
};

// A rule's way to say no: the end of a sentence about the node, "it reduces axis 2".
Status looks_along(std::string why);

// ---------------------------------------------------------------------------------------------------------------------

// A node, some operands of which get one more leading axis (the iterations of a loop, say). What its operator changes
// for that (OpDef::widen): axes that attributes and inputs name, operands to be aligned. Ranks are those without the
// new axis. Nothing is changed in the node itself.
class WidenContext : public NodeAxes {
 public:
  WidenContext(const ir::Node& node, const std::function<bool(const ir::Value*)>& varies);

  const ir::Attributes& attributes() const { return attributes_; }
  // Whether input i gets the axis.
  bool varies(size_t i) const { return operand(i).varies; }
  // An attribute that names an axis.
  int64_t axis_attribute(const char* name = "axis") const;

  void set(ir::Attribute attribute) { attributes_.set(std::move(attribute)); }
  // Input i, there or not, is this constant.
  void set_input(size_t i, Tensor contents);
  // Axes of 1 behind the new one, so that input i, if it varies, has `rank` axes behind the new one.
  void align(size_t i, int64_t rank);
  // An input that does not vary gets the axis all the same, with as many copies of what it holds.
  void repeat(size_t i) { operand(i).repeated = true; }

  struct Operand {
    bool varies = false, repeated = false;
    int64_t inserted = 0;  // axes of 1 behind the new one
    Tensor constant;       // defined: this
  };
  // As many as inputs, or more where set_input() added some.
  const std::vector<Operand>& operands() const { return operands_; }

 private:
  const Operand& operand(size_t i) const { return operands_[i]; }
  Operand& operand(size_t i) { return operands_[i]; }

  ir::Attributes attributes_;
  std::vector<Operand> operands_;
};

// An axis counted from the front is one further behind where there is one more leading axis; from the back, it is where
// it was.
std::vector<int64_t> behind_new_axis(std::span<const int64_t> axes);

// How a node runs once for all positions along a new leading axis.
struct Stacked {
  enum class Way : uint8_t {
    kReshaped,  // it moves no element: its results are its operand under other sizes
    kWidened,   // operands and results have the axis in front
    kMerged,    // the new axis and axis 0 of operands and results are one
  };
  Way way = Way::kReshaped;
  // With kWidened: what the node has instead of its own.
  ir::Attributes attributes;
  std::vector<WidenContext::Operand> operands;
};

// Of `node`, whose sizes are all known, where inputs of which `varies` says so get an axis of `extent` (unknown: of any
// size). kInvalidArgument with the reason where there is no way.
Result<Stacked> stack_node(const ir::Node& node, const std::function<bool(const ir::Value*)>& varies,
                           const Dim& extent);

// Of which operands some rows (positions of axis 0) of the node's one result need just these rows; of the others they
// need all. nullopt: rows cannot be had one without the other.
std::optional<std::vector<bool>> operands_of_rows(const ir::Node& node);

}  // namespace treadle
