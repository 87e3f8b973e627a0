#pragma once
// All values of a model, those of bodies included, with names that are unique in the model.

#include <span>
#include <string>
#include <vector>

#include "infer/inference.h"
#include "session/inputs.h"

namespace treadle::session {

// A node with a body around a value.
struct Enclosing {
  std::string node, op, attribute;  // "/Scan_1", "Scan", "body"
};

struct InnerValue {
  ir::Value* value;
  std::string name;               // "q" in the model's graph, "/Scan_1:body/q" in a body
  std::vector<Enclosing> around;  // outermost first
  // Positions of the nodes of `around` in their graphs, then that of the maker: nodes run in the order of these lists.
  // An input of a body counts as made before the body's first node.
  std::vector<int64_t> place;
};

std::string name_of(const ir::Value& value);

// What nodes make, and inputs of bodies, in the order of a run. Constants and the model's inputs are left out.
std::vector<InnerValue> inner_values(const ir::Graph& graph);

// Infers the types of all values of `graph`, which is as imported, for runs with these feeds: their sizes become those
// of the inputs, and numbers of few elements are taken as known. Nodes that do not fit keep their declared types.
// Errors: kInvalidArgument for a feed that no input has.
Status infer_for(ir::Graph& graph, std::span<const Feed> feeds, Inference& inference);

}  // namespace treadle::session
