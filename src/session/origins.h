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

// What people call the values of a model whose values are numbered.
class ModelValues {
 public:
  struct Entry {
    std::string path;
    std::vector<std::string> loops;  // names of the Loops and Scans around it, the outermost first
  };
  explicit ModelValues(const ir::Graph& graph);

  const Entry& operator[](uint32_t origin) const { return entries_[origin - 1]; }
  const ir::Graph& graph() const { return graph_; }

  // The values that `pattern` names, in the order of the graph: those with this path, otherwise those with this name in
  // any body. A pattern with "*" names all whose path it matches. `is_rewritten`: loading may have taken values away.
  // Errors: kInvalidArgument with the nearest name.
  Result<std::vector<uint32_t>> named(std::string_view pattern, bool is_rewritten) const;

 private:
  template <class Wanted>
  std::vector<uint32_t> numbers_of(Wanted&& wanted) const;
  Status unknown(std::string_view name, bool is_rewritten) const;

  const ir::Graph& graph_;
  std::vector<Entry> entries_;
};

}  // namespace treadle::session
