#pragma once
// Inner values of a model as outputs of the model, so that any engine can be asked for them: those of a body for all
// iterations. The graph gets nodes of the standard only, and its own outputs stay what they are.
//
// A value of the model's graph becomes an output as it is. A value of a body leaves each node around it, from the
// inside to the outside, in one of two ways:
//
// - rows: a Loop or Scan stacks it as a scan output, and the branch of an If that does not compute it hands out zeros.
//   That needs equal sizes in all iterations;
// - a log, where sizes change: a sequence to which each iteration appends the value, and a second one with the numbers
//   of the iterations. Loops carry both as states. A branch that does not compute the value hands them on. A Scan
//   carries tensors only, so there are no logs through a Scan.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "session/inner_values.h"

namespace treadle::session {

struct ExposedValue {
  InnerValue inner;
  Type type;  // in runs with the given feeds
  // Positions among the outputs of the exposed model.
  std::optional<size_t> output;  // rows, of which the first axes count iterations of the loops around; or a log
  std::optional<size_t> log_at;  // of a log: for each element the numbers of the iterations, outermost first
  std::optional<size_t> ran;     // of rows: which of them were computed; without it all were
  std::string left_out;          // why there is no output
};

// Adds outputs to `graph`, which is as imported, for runs with these feeds (session/inner_values.h): the more sizes are
// known, the more values become rows. `wanted`: names of values; empty means all that nodes make. Errors:
// kInvalidArgument for a name that no value has.
Result<std::vector<ExposedValue>> expose(ir::Graph& graph, std::span<const Feed> feeds,
                                         std::span<const std::string> wanted);

// A value of a model, for which an input of another model stands.
struct ReadValue {
  std::string name;     // as InnerValue has it
  uint32_t origin = 0;  // ir::Value::origin
};

// Leaves one node of `graph`, which is as imported, with all constants that it reads. The other values that the node
// and its bodies read become the inputs of the graph. Returns for each input the value for which it stands. `path`: the
// node's name. Errors: kInvalidArgument if there is no such node.
Result<std::vector<ReadValue>> leave_node(ir::Graph& graph, std::span<const Feed> feeds, std::string_view path);

}  // namespace treadle::session
