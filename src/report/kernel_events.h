#pragma once
// A recorded run as onnxruntime's profiler writes it, for programs that read such files.

#include <cstdint>
#include <map>
#include <string>

#include "run/profile.h"

namespace treadle::report {

struct ModelNode {
  std::string name;  // in its own graph
  std::string op;
};
// By path.
using ModelNodes = std::map<std::string, ModelNode, std::less<>>;
ModelNodes nodes_of_model(const ir::Graph& graph);

// A JSON array with an event for each node that ran, in order of their ends. Nodes that one instruction runs share its
// time equally; a node that was lowered to several has one event for each, but for those inside of a loop that has one.
// Times are microseconds since `origin_ns` of the steady clock.
std::string kernel_events(const run::Profile& profile, const ModelNodes& model, int64_t origin_ns);

}  // namespace treadle::report
