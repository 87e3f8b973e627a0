#pragma once
// What a node takes, by constants, out of a value along one axis; and what a value is put together of along it.

#include <vector>

#include "ir/graph.h"

namespace treadle::opt {

// The positions [begin, end) of a whole.
struct Part {
  ir::Value* value = nullptr;  // what is there; of Taken: what the node makes
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
  bool covers(const Part& other) const { return begin == other.begin && end == other.end; }
};

// What a Gather of one position, a Slice or a Split takes.
struct Taken {
  ir::Value* whole = nullptr;  // null: the node is something else, or what it takes is not known
  int64_t axis = 0;            // from the front
  bool drops_axis = false;     // a Gather by a scalar
  std::vector<Part> parts;     // results that are left out are not among them
};
Taken taken_by(const ir::Node& node);

// The operands of the Concat along `axis` that makes `v`; none where something else makes it or a size is not known.
std::vector<Part> parts_of(const ir::Value* v, int64_t axis);

// What an Unsqueeze made `v` of, where it put in this one axis; else null.
ir::Value* without_axis(const ir::Value* v, int64_t axis);

// Whether a value of type `from` has all the sizes that readers of one of type `to` were told.
bool knows_sizes_of(const Type& from, const Type& to);

}  // namespace treadle::opt
