// A graph of onnxruntime as this library sees it: nodes, their inputs and outputs, and which nodes use which values.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host.h"

namespace treadle::provider {

using Values = std::vector<const OrtValueInfo*>;  // NULL: an optional input or output that is left out

std::string name_of(const OrtValueInfo* value);  // "" for NULL
const OrtTypeInfo* type_of(const OrtValueInfo* value);
// Whether the value is the same in every run.
bool is_constant(const OrtValueInfo* value);
// The contents of a constant, else NULL. Throws if onnxruntime cannot tell: in a body, for constants of the graph
// around it that are in a separate file.
const OrtValue* constant_of(const OrtValueInfo* value);

using Bodies = std::vector<std::pair<std::string, const OrtGraph*>>;  // by attribute

struct Node {
  const OrtNode* handle;
  std::string domain, type;
  Values inputs, outputs;
  Values captured;  // values that its bodies capture, at any depth
  Bodies bodies;

  // Whether it is the operator of that name in ONNX's own domain.
  bool is(std::string_view name) const { return type == name && (domain.empty() || domain == "ai.onnx"); }
};

Node read_node(const OrtNode* handle);
std::vector<Node> read_nodes(const OrtGraph* graph);
Values inputs_of(const OrtGraph* graph);
Values outputs_of(const OrtGraph* graph);
Values initializers_of(const OrtGraph* graph);

// The node whose body a graph is; NULL: none, or onnxruntime does not say (1.23).
const OrtNode* parent_of(const OrtGraph* graph);
bool is_from_outer_scope(const OrtValueInfo* value);
size_t id_of(const OrtNode* node);
// Whether a provider, perhaps this one, has claimed the node.
bool is_taken(const OrtNode* node);

struct Graph {
  explicit Graph(const OrtGraph* handle);
  // Whether the graph seems to be a body: it has no inputs, or values of a graph around it.
  bool looks_like_body() const;
  // Whether a value is the same in every run: a constant, or computed from constants alone.
  bool is_fixed(const OrtValueInfo* value) const;

  const OrtGraph* handle;
  std::vector<Node> nodes;
  std::map<std::string, size_t> producers;               // by value
  std::map<std::string, std::vector<size_t>> consumers;  // by value; including nodes that capture it
  std::set<std::string> outputs;
  std::set<size_t> fixed;  // nodes whose results are the same in every run

 private:
  void find_fixed();
};

}  // namespace treadle::provider
