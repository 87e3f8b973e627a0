#pragma once
// The graph: values, nodes and regions (bodies). A node refers to values by pointer, whichever region defines them. So
// a captured value is an ordinary operand, and no names are looked up after import.

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/arena.h"
#include "ir/attribute.h"
#include "ir/name.h"
#include "type/any_value.h"

namespace treadle {
struct OpDef;      // op/op_def.h
struct OpVersion;  // op/op_def.h
}  // namespace treadle

namespace treadle::ir {

class Graph;
struct Node;
struct Region;

// Values, nodes, regions and their names lie in their graph's arena, so making one moves a pointer. Destroying a node
// or region runs its destructor; the memory is freed with the graph.
struct InGraphMemory {
  static void* operator new(size_t bytes, Arena& arena) { return arena.allocate(bytes, alignof(std::max_align_t)); }
  static void operator delete(void*, Arena&) {}
  static void operator delete(void*) {}
};

// A value is defined once: by a node's output, as a region's input, or as a constant.
struct Value {
  Name name;
  Type type;                 // declared, then refined by inference
  Node* producer = nullptr;  // null for region inputs and constants
  uint32_t output_index = 0;
  uint32_t origin = 0;      // the number of a model's value for which it stands (session/origins.h); 0: none
  Region* owner = nullptr;  // the region whose input or node defines it; the top region for constants
  // A note for one walk at a time over the graph. The number is valid only if `walk` is the walk's own.
  struct Note {
    uint32_t walk = 0, number = 0;
  };
  mutable Note note;
  Tensor constant;  // defined() for initialisers and folded values

  bool is_constant() const { return constant.defined(); }
};

// The part of a node that an operator's functions see: its record, its version and its attributes.
struct NodeInfo {
  const OpDef* op = nullptr;
  const OpVersion* version = nullptr;  // resolved by the opset that the model or function around the node imports
  Attributes attributes;
  // The result of the operator's `parse` for these attributes. Copies of the node share it.
  std::shared_ptr<const void> parsed;
  Name name;  // unique path, e.g. "/encoder/Loop_3:body/Add_7"
  uint32_t input_count = 0;
  uint32_t output_count = 0;

  template <class T>
  const T& parsed_as() const {
    return *static_cast<const T*>(parsed.get());
  }
};

struct Node : NodeInfo, InGraphMemory {
  InlineVector<Value*, 4> inputs;                // null: optional input left out
  InlineVector<Value*, 2> outputs;               // null: optional output left out
  std::vector<std::unique_ptr<Region>> regions;  // bodies, in the order of the operator's graph attributes
  Region* parent = nullptr;

  Region* region(std::string_view attribute) const;
};

struct Region : InGraphMemory {
  std::string attribute;  // "body", "then_branch", ...; empty for the top region
  std::string name;       // the graph's own name
  Node* parent_node = nullptr;
  Graph* graph = nullptr;
  std::vector<Value*> inputs;
  std::vector<Value*> outputs;               // null if a pass found the output unused
  std::vector<std::unique_ptr<Node>> nodes;  // topologically sorted
  // The types of `outputs` that inference found without knowing sizes of a run. A scan output of a loop without
  // iterations takes its sizes from here. Set once: when the model is loaded, or when a lowering builds the region.
  std::vector<Type> output_types;

  Region* parent_region() const { return parent_node ? parent_node->parent : nullptr; }
  // Whether `inner` is this region or nested in it.
  bool contains(const Region* inner) const;
};

// Values that `region`, nested regions included, uses and an outer region defines. Constants are left out. Each value
// appears once, in order of first use.
std::vector<Value*> captures(const Region& region);

// Metadata of a model for its users (get_modelmeta).
struct Metadata {
  int64_t ir_version = 0;
  std::string producer_name, producer_version, domain, description, graph_name, graph_description;
  int64_t model_version = 0;
  std::vector<std::pair<std::string, std::string>> properties;
  std::vector<std::pair<std::string, int64_t>> opset_imports;
};

class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Region& top() { return *top_; }
  const Region& top() const { return *top_; }
  Metadata metadata;
  // Defaults of graph inputs: initialisers that a caller may override. Parallel to `top().inputs`; undefined for an
  // input without a default.
  std::vector<Tensor> input_defaults;
  std::string file;  // name of the file, for messages

  Value* new_value(std::string_view name, Type type, Region* owner);
  Value* new_constant(std::string_view name, Tensor tensor);
  // A new empty region of `node`.
  Region* new_region(Node* node, std::string attribute);
  // A new node without inputs and outputs at position `index` (default: the end) of `region`.
  Node* new_node(Region* region, const OpDef* op, const OpVersion* version, std::string_view name,
                 size_t index = SIZE_MAX);
  void add_input(Node* node, Value* value) {  // null for an input that is left out
    node->inputs.push_back(value);
    node->input_count = static_cast<uint32_t>(node->inputs.size());
  }
  Value* add_output(Node* node, std::string_view name);
  Value* add_output(Node* node, std::string_view name, Type type) {
    Value* value = add_output(node, name);
    value->type = std::move(type);
    return value;
  }
  void add_absent_output(Node* node);
  // Takes over all values of `other`, and returns the nodes of its top region, with `into` as their parent. The caller
  // maps the inputs and outputs of other's top region to values of its own.
  std::vector<std::unique_ptr<Node>> splice(Graph& other, Region* into);
  // A deep copy; constants share their memory.
  std::unique_ptr<Graph> clone() const;
  // All values ever made, also those that nothing reads any more.
  const std::vector<Value*>& values() const { return values_; }
  void reserve_values(size_t count) { values_.reserve(values_.size() + count); }

 private:
  Value* make_value(std::string_view name, Region* owner);

  Arena arena_;
  std::unique_ptr<Region> top_;
  std::vector<Value*> values_;  // in the arena; destroyed with the graph
};

// Appends copies of the nodes of `from` to `into`, which may belong to another graph. `map` goes from values of the old
// graph to values of the new one. It must have all values that `from` uses but does not define, except constants, and
// gets the copied values. Returns the copies of `from`'s outputs.
std::vector<Value*> inline_region(const Region& from, Region* into, std::unordered_map<const Value*, Value*>& map);

// Replaces every use of a key, in all regions, by its value in the map, followed through chains.
void replace_uses(Graph& graph, const std::unordered_map<Value*, Value*>& map);
void replace_uses(Region& region, const std::unordered_map<Value*, Value*>& map);  // including nested regions
void replace_uses(Node& node, const std::unordered_map<Value*, Value*>& map);      // including its regions
size_t count_nodes(const Region& region);                                          // including nested regions

// Calls `fn(Node&)` for each node of `region` and of the regions nested in it, outer first.
template <class Fn>
void for_each_node(Region& region, Fn&& fn) {
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    Node& node = *region.nodes[i];
    fn(node);
    for (auto& r : node.regions) for_each_node(*r, fn);
  }
}
template <class Fn>
void for_each_node(const Region& region, Fn&& fn) {
  for (const auto& node : region.nodes) {
    fn(static_cast<const Node&>(*node));
    for (const auto& r : node->regions) for_each_node(static_cast<const Region&>(*r), fn);
  }
}

// A new number for Value::Note::walk; it repeats after four billion walks.
uint32_t new_walk();

// Checks the invariants of graphs: definitions precede uses, links agree in both directions, and no node uses a value
// of a region that is not around the node. Errors: kInternal with the place of the first violation.
Status verify(const Graph& graph);

}  // namespace treadle::ir
