#include "graph.h"

#include <algorithm>

namespace treadle::provider {

std::string name_of(const OrtValueInfo* value) {
  if (!value) return "";
  const char* name = nullptr;
  check(ort().GetValueInfoName(value, &name));
  return name;
}

const OrtTypeInfo* type_of(const OrtValueInfo* value) {
  const OrtTypeInfo* type = nullptr;
  check(ort().GetValueInfoTypeInfo(value, &type));
  return type;
}

bool is_constant(const OrtValueInfo* value) {
  bool constant = false;
  check(ort().ValueInfo_IsConstantInitializer(value, &constant));
  return constant;
}

const OrtValue* constant_of(const OrtValueInfo* value) {
  const OrtValue* contents = nullptr;
  if (is_constant(value)) check(ort().ValueInfo_GetInitializerValue(value, &contents));
  return contents;
}

namespace {

Bodies bodies_of(const OrtNode* node) {
  size_t count = 0;
  check(ort().Node_GetNumSubgraphs(node, &count));
  std::vector<const OrtGraph*> graphs(count);
  std::vector<const char*> names(count);
  check(ort().Node_GetSubgraphs(node, graphs.data(), count, names.data()));
  Bodies bodies;
  for (size_t i = 0; i < count; ++i) bodies.emplace_back(names[i], graphs[i]);
  return bodies;
}

}  // namespace

Node read_node(const OrtNode* handle) {
  const char *type = nullptr, *domain = nullptr;
  check(ort().Node_GetOperatorType(handle, &type));
  check(ort().Node_GetDomain(handle, &domain));
  return {.handle = handle,
          .domain = domain,
          .type = type,
          .inputs = list_of(ort().Node_GetNumInputs, ort().Node_GetInputs, handle),
          .outputs = list_of(ort().Node_GetNumOutputs, ort().Node_GetOutputs, handle),
          .captured = list_of(ort().Node_GetNumImplicitInputs, ort().Node_GetImplicitInputs, handle),
          .bodies = bodies_of(handle)};
}

std::vector<Node> read_nodes(const OrtGraph* graph) {
  std::vector<Node> nodes;
  for (const OrtNode* handle : list_of(ort().Graph_GetNumNodes, ort().Graph_GetNodes, graph)) {
    nodes.push_back(read_node(handle));
  }
  return nodes;
}

Values inputs_of(const OrtGraph* graph) {
  return list_of(ort().Graph_GetNumInputs, ort().Graph_GetInputs, graph);
}
Values outputs_of(const OrtGraph* graph) {
  return list_of(ort().Graph_GetNumOutputs, ort().Graph_GetOutputs, graph);
}
Values initializers_of(const OrtGraph* graph) {
  return list_of(ort().Graph_GetNumInitializers, ort().Graph_GetInitializers, graph);
}

const OrtNode* parent_of(const OrtGraph* graph) {
  const OrtNode* parent = nullptr;
  check(ort().Graph_GetParentNode(graph, &parent));
  return parent;
}

bool is_from_outer_scope(const OrtValueInfo* value) {
  bool outer = false;
  check(ort().ValueInfo_IsFromOuterScope(value, &outer));
  return outer;
}

size_t id_of(const OrtNode* node) {
  size_t id = 0;
  check(ort().Node_GetId(node, &id));
  return id;
}

bool is_taken(const OrtNode* node) {
  const char* provider = nullptr;
  check(ort().Node_GetEpName(node, &provider));
  return provider && *provider;
}

Graph::Graph(const OrtGraph* graph) : handle(graph), nodes(read_nodes(graph)) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const OrtValueInfo* value : nodes[i].outputs) {
      if (value) producers[name_of(value)] = i;
    }
    for (const Values* used : {&nodes[i].inputs, &nodes[i].captured}) {
      for (const OrtValueInfo* value : *used) {
        if (value) consumers[name_of(value)].push_back(i);
      }
    }
  }
  for (const OrtValueInfo* value : outputs_of(graph)) outputs.insert(name_of(value));
  find_fixed();
}

void Graph::find_fixed() {
  std::vector<size_t> open(nodes.size());  // number of inputs that may differ between runs
  std::vector<size_t> found;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const OrtValueInfo* value : nodes[i].inputs) open[i] += value && !is_constant(value);
    if (open[i] == 0 && !nodes[i].inputs.empty() && nodes[i].bodies.empty()) found.push_back(i);
  }
  while (!found.empty()) {
    const size_t node = found.back();
    found.pop_back();
    fixed.insert(node);
    for (const OrtValueInfo* value : nodes[node].outputs) {
      const auto users = consumers.find(name_of(value));
      if (!value || users == consumers.end()) continue;
      for (const size_t user : users->second) {
        if (nodes[user].bodies.empty() && --open[user] == 0) found.push_back(user);
      }
    }
  }
}

bool Graph::is_fixed(const OrtValueInfo* value) const {
  const auto producer = producers.find(name_of(value));
  return producer == producers.end() ? is_constant(value) : fixed.contains(producer->second);
}

bool Graph::looks_like_body() const {
  return inputs_of(handle).empty() || std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
           return std::any_of(node.inputs.begin(), node.inputs.end(),
                              [](const OrtValueInfo* value) { return value && is_from_outer_scope(value); });
         });
}

}  // namespace treadle::provider
