#pragma once
// Finds the message of a node by the path in an error, such as "/decoder/Loop_3:body/Add_7", through bodies and inlined
// functions. For models that are text, in which the names of messages have lines.

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

  // The innermost node on a path from an import with unique paths. Parts of the path behind it (nodes of a lowering)
  // are ignored. Null if there is no such node.
  const wire::NodeProto* find(std::string_view path);
  // The graph of one of its attributes; null if there is none.
  static const wire::GraphProto* body(const wire::NodeProto& node, std::string_view attribute);

 private:
  // The nodes of one graph, or of one call of a function, by path. Made on first use.
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
