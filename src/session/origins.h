#pragma once
// Names and numbers of the values of a model, for looking at them in a run. A plan's values say by their number
// (ir::Value::origin) which values of the model they stand for.

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace treadle::session {

// Gives each value of the graph a number of its own, from 1 on.
void number_values(ir::Graph& graph);
// The value with this number in a graph whose values are numbered.
inline const ir::Value& value_of(const ir::Graph& graph, uint32_t origin) {
  return *graph.values()[origin - 1];
}

// The name of a value within the whole model: "q" outside of bodies, "/Scan_1:body/q" in a body.
std::string path_of(const ir::Value& value);

// The values that `pattern` names, in the order of the graph: those with this path, otherwise those with this name in
// any body. A pattern with "*" names all whose path it matches. Errors: kInvalidArgument with the nearest name.
Result<std::vector<uint32_t>> values_named(const ir::Graph& graph, std::string_view pattern);

}  // namespace treadle::session
