// A graph of onnxruntime as this library reads it: nodes, the values that they take and give, and who uses which.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host.h"

namespace treadle::provider {

using Values = std::vector<const OrtValueInfo*>;  // NULL: an optional input or output that is left out

std::string name_of(const OrtValueInfo* value);  // "" of NULL
const OrtTypeInfo* type_of(const OrtValueInfo* value);
// Whether the value is the same in every run.
bool is_constant(const OrtValueInfo* value);
// What it holds then, else NULL. Throws where onnxruntime cannot tell: in a body, of constants of the graph around it
// that lie in a file of their own.
const OrtValue* constant_of(const OrtValueInfo* value);

using Bodies = std::vector<std::pair<std::string, const OrtGraph*>>;  // by the attribute that holds them

struct Node {
  const OrtNode* handle;
  std::string domain, type;
  Values inputs, outputs;
  Values captured;  // by its bodies, at any depth
  Bodies bodies;

  // One of ONNX's own operators.
  bool is(std::string_view name) const { return type == name && (domain.empty() || domain == "ai.onnx"); }
};

Node read_node(const OrtNode* handle);
std::vector<Node> read_nodes(const OrtGraph* graph);
Values inputs_of(const OrtGraph* graph);
Values outputs_of(const OrtGraph* graph);
Values initializers_of(const OrtGraph* graph);

// The node that a graph is a body of; NULL: none, or onnxruntime does not say (1.23).
const OrtNode* parent_of(const OrtGraph* graph);
bool is_from_outer_scope(const OrtValueInfo* value);
size_t id_of(const OrtNode* node);
// Some provider, perhaps this one, has claimed the node.
bool is_taken(const OrtNode* node);

struct Graph {
  explicit Graph(const OrtGraph* handle);
  // Shows signs of being a body: no inputs, or values of the graph around it.
  bool looks_like_body() const;
  // Whether a value is the same in every run: a constant, or computed from constants alone.
  bool is_fixed(const OrtValueInfo* value) const;

  const OrtGraph* handle;
  std::vector<Node> nodes;
  std::map<std::string, size_t> producers;               // by value
  std::map<std::string, std::vector<size_t>> consumers;  // by value; those that capture it as well
  std::set<std::string> outputs;
  std::set<size_t> fixed;  // nodes that compute the same in every run

 private:
  void find_fixed();
};

}  // namespace treadle::provider
