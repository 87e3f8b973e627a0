#pragma once
// Which axis of a node's results an axis of its operands becomes, and how a node runs over one more leading axis. Each
// operator states both in its record (OpDef::axes, OpDef::widen). Used for loops that run at once, streams, batches and
// pipelines.

#include <functional>
#include <optional>
#include <unordered_map>

#include "ir/graph.h"

namespace treadle {

inline constexpr int64_t kNoAxis = -1;

// The position from the front of a valid axis, which may count from the back (normalize_axis() checks).
inline int64_t from_front(int64_t axis, int64_t rank) {
  return axis < 0 ? axis + rank : axis;
}

// The values that run along one axis (time, the batch), each with the number of this axis. Other values are absent.
using AxisMap = std::unordered_map<const ir::Value*, int64_t>;

// Adds the outputs of `node` to `axes`, which has its inputs and the captures of its bodies already. Succeeds if the
// node treats each position along the axis alike and independently, so that a part of the axis gives that part of the
// results. Types have to be known. Errors complete a sentence on what depends on other positions: "its softmax runs
// along axis 1".
Status carry_axis(const ir::Node& node, AxisMap& axes);
// The same for all nodes of a body, whose inputs are in `axes` already.
Status carry_axis(const ir::Region& region, AxisMap& axes);

// The axis of `out` that axis `axis` of `in` becomes when elements keep their order: it has the same size, and as many
// elements before and behind it. kNoAxis: none.
int64_t same_axis(const Shape& in, int64_t axis, const Shape& out);

// The contents of a constant integer input; nullopt if it is left out or unknown.
std::optional<std::vector<int64_t>> constant_ints(const ir::Node& node, size_t input);
// Axes that some versions of an operator take as an attribute and others as an input. nullopt: unknown. Empty: not
// given.
std::optional<std::vector<int64_t>> constant_axes(const ir::Node& node, size_t input, const char* attribute = "axes");

// ---------------------------------------------------------------------------------------------------------------------

// What both kinds of rules can ask about their node. Axes are counted from the front.
class NodeAxes {
 public:
  const ir::Node& node() const { return node_; }
  int version() const;
  size_t inputs() const { return node_.inputs.size(); }
  bool present(size_t i) const { return i < inputs() && node_.inputs[i]; }
  int64_t rank(size_t i) const { return node_.inputs[i]->type.rank(); }
  int64_t out_rank(size_t i = 0) const { return node_.outputs[i]->type.rank(); }
  // Whether input i is left out, or has a single element, which is broadcast.
  bool is_single(size_t i) const;

 protected:
  explicit NodeAxes(const ir::Node& node) : node_(node) {}

  const ir::Node& node_;
};

// The argument of a rule (OpDef::axes): gives the axis of each input, and takes the axis of each output.
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
  // The attribute `name`, or `otherwise` if it is not given, as a position among `rank` axes.
  int64_t axis(int64_t rank, int64_t otherwise, const char* name = "axis") const;

  Status give(size_t output, int64_t axis);
  Status give_all(int64_t axis);
  // All values, for operators with bodies.
  AxisMap& axes() { return axes_; }

 private:
  AxisMap& axes_;
  InlineVector<int64_t, 8> in_;
};

// The error with which a rule refuses. `why` completes a sentence about the node: "it reduces axis 2".
Status looks_along(std::string why);

// ---------------------------------------------------------------------------------------------------------------------

// The argument of OpDef::widen. Some operands of the node get one more leading axis, such as the iterations of a loop.
// The operator changes axes in attributes and inputs, and aligns operands. Ranks are those without the new axis. The
// node itself does not change.
class WidenContext : public NodeAxes {
 public:
  WidenContext(const ir::Node& node, const std::function<bool(const ir::Value*)>& varies);

  const ir::Attributes& attributes() const { return attributes_; }
  // Whether input i gets the new axis.
  bool varies(size_t i) const { return operand(i).varies; }
  // An attribute that names an axis.
  int64_t axis_attribute(const char* name = "axis") const;

  void set(ir::Attribute attribute) { attributes_.set(std::move(attribute)); }
  // Makes input i, given or not, this constant.
  void set_input(size_t i, Tensor contents);
  // Inserts axes of size 1 behind the new axis, so that input i, if it varies, has `rank` axes behind the new one.
  void align(size_t i, int64_t rank);
  // Copies input i, which does not vary, along the new axis.
  void repeat(size_t i) { operand(i).repeated = true; }

  struct Operand {
    bool varies = false, repeated = false;
    int64_t inserted = 0;  // axes of size 1 behind the new one
    Tensor constant;       // if defined, replaces the input
  };
  // At least as many as inputs; set_input() may have added some.
  const std::vector<Operand>& operands() const { return operands_; }

 private:
  const Operand& operand(size_t i) const { return operands_[i]; }
  Operand& operand(size_t i) { return operands_[i]; }

  ir::Attributes attributes_;
  std::vector<Operand> operands_;
};

// An axis counted from the front moves one further behind; an axis counted from the back stays.
std::vector<int64_t> behind_new_axis(std::span<const int64_t> axes);

// How a node runs once for all positions along a new leading axis.
struct Stacked {
  enum class Way : uint8_t {
    kReshaped,  // moves no element: the results are the operand with other sizes
    kWidened,   // operands and results have the new axis in front
    kMerged,    // the new axis and axis 0 of operands and results become one axis
  };
  Way way = Way::kReshaped;
  // With kWidened: replace those of the node.
  ir::Attributes attributes;
  std::vector<WidenContext::Operand> operands;
};

// How to run `node`, whose sizes are all known, when the inputs for which `varies` holds get an axis of size `extent`
// (unknown: any size). Errors: kInvalidArgument with the reason if there is no way.
Result<Stacked> stack_node(const ir::Node& node, const std::function<bool(const ir::Value*)>& varies,
                           const Dim& extent);

// By operand: whether some rows (positions of axis 0) of the node's only result need just these rows of the operand.
// Operands with false are needed whole. nullopt: rows of the result cannot be computed independently.
std::optional<std::vector<bool>> operands_of_rows(const ir::Node& node);

}  // namespace treadle
