#pragma once
// Follows one axis (time, the batch) from the inputs of a node to its outputs, where the node treats every position
// along it alike and on its own: then a part of the axis gives that part of the results.

#include <unordered_map>

#include "ir/graph.h"

namespace treadle::opt {

// Values that run along the axis, and which of their axes it is. Values that are not in here do not.
using AxisMap = std::unordered_map<const ir::Value*, int64_t>;

// Puts the outputs of `node` into `axes`, whose inputs (and what its bodies capture) are in there already. Wants types.
// Errors say what in the node looks along the axis, as the end of a sentence: "its softmax runs along axis 1".
Status carry_axis(const ir::Node& node, AxisMap& axes);
// The nodes of a body, whose inputs are in `axes` already.
Status carry_axis(const ir::Region& region, AxisMap& axes);

// The axis of `out` that is axis `axis` of `in` when elements keep their order: of the same size, with as many elements
// before and behind it. kNoAxis: none.
inline constexpr int64_t kNoAxis = -1;
int64_t same_axis(const Shape& in, int64_t axis, const Shape& out);

// The contents of an integer input that is a constant; nullopt where it is left out or not known.
std::optional<std::vector<int64_t>> constant_ints(const ir::Node& node, size_t input);
// Axes that some versions of an operator take as an attribute and others as an input; nullopt where they are not known.
// None given: empty.
std::optional<std::vector<int64_t>> constant_axes(const ir::Node& node, size_t input, const char* attribute = "axes");

}  // namespace treadle::opt
