#pragma once
// From the place that an error names back to the message of the node: "/decoder/Loop_3:body/Add_7", through bodies and
// through functions that were inlined. For models that are text, where the message's names lie on a line.

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "model/functions.h"
#include "wire/onnx.h"

namespace treadle::model {

class NodeFinder {
 public:
  explicit NodeFinder(const wire::ModelProto& model) : model_(model) {}

  // The innermost node on a path as an import gives them, with unique paths; what comes behind it (nodes that an
  // operator was lowered to) does not matter. Null when there is no such node.
  const wire::NodeProto* find(std::string_view path);
  // The graph of one of its attributes; null when there is none.
  static const wire::GraphProto* body(const wire::NodeProto& node, std::string_view attribute);

 private:
  // The nodes of one graph, or of one call of a function, by their paths. Made when a path leads there.
  using Paths = std::unordered_map<std::string, const wire::NodeProto*>;
  const wire::NodeProto* find_in(const wire::List<wire::NodeProto>& nodes, const std::string& prefix,
                                 std::string_view path);
  const wire::NodeProto* find_inside(const wire::NodeProto& node, size_t length, std::string_view path);

  const wire::ModelProto& model_;
  std::unordered_map<std::string, Paths> by_prefix_;
  FunctionTable functions_;
  bool has_functions_ = false;
};

}  // namespace treadle::model
