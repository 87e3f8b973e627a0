#pragma once
// The parts that a node takes out of a value along one axis, by constants; and the parts of which a value is joined.

#include <vector>

#include "ir/graph.h"

namespace treadle::opt {

// The positions [begin, end) along an axis of a whole.
struct Part {
  ir::Value* value = nullptr;  // the part; in Taken: the result of the node
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
  bool covers(const Part& other) const { return begin == other.begin && end == other.end; }
};

// The parts that a Gather of one position, a Slice or a Split takes.
struct Taken {
  ir::Value* whole = nullptr;  // null: the node is another one, or its parts are unknown
  int64_t axis = 0;            // counted from the front
  bool drops_axis = false;     // a Gather by a scalar
  std::vector<Part> parts;     // results that are left out are not included
};
Taken taken_by(const ir::Node& node);

// The operands of the Concat along `axis` that makes `v`; empty if another node makes it, or a size is unknown.
std::vector<Part> parts_of(const ir::Value* v, int64_t axis);

// The operand of an Unsqueeze that inserts exactly this axis of `v`; otherwise null.
ir::Value* without_axis(const ir::Value* v, int64_t axis);

// Whether a value of type `from` has all the sizes that readers of a value of type `to` rely on.
bool has_sizes_of(const Type& from, const Type& to);

}  // namespace treadle::opt
