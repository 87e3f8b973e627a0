#pragma once
// A recorded run in the format of onnxruntime's profiler, for programs that read such files.

#include <cstdint>
#include <map>
#include <string>

#include "run/profile.h"

namespace treadle::report {

struct ModelNode {
  std::string name;  // within its own graph
  std::string op;
};
// By path.
using ModelNodes = std::map<std::string, ModelNode, std::less<>>;
ModelNodes nodes_of_model(const ir::Graph& graph);

// A JSON array with an event for each node that ran, in order of their ends. Nodes of one instruction share its time
// equally. A lowered node has one event for each of the nodes that replace it, without those in a loop that has an
// event itself. Times are microseconds since `origin_ns` of the steady clock.
std::string kernel_events(const run::Profile& profile, const ModelNodes& model, int64_t origin_ns);

}  // namespace treadle::report
