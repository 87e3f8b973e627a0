#pragma once
// The graph: values, nodes and regions (bodies). SSA by pointer: a node refers to values, whichever region defined
// them, so a captured value is an ordinary operand and shadowed names cannot be confused after import.

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

// Values, nodes and regions lie in their graph's memory, and so do the names that it gives them: making one is moving a
// pointer. A unique_ptr to a node or region ends its life, the memory goes with the graph.
struct InGraphMemory {
  static void* operator new(size_t bytes, Arena& arena) { return arena.allocate(bytes, alignof(std::max_align_t)); }
  static void operator delete(void*, Arena&) {}
  static void operator delete(void*) {}
};

// Defined once: by a node's output, as a region's input, or as a constant.
struct Value {
  Name name;
  Type type;                 // declared, then refined by inference
  Node* producer = nullptr;  // null for region inputs and constants
  uint32_t output_index = 0;
  Region* owner = nullptr;  // the region whose input or node defines it; the top region for constants
  // For one walk at a time over the graph: a number of its own, which means nothing when `walk` is another's.
  struct Note {
    uint32_t walk = 0, number = 0;
  };
  mutable Note note;
  Tensor constant;  // defined() for initialisers and folded values

  bool is_constant() const { return constant.defined(); }
};

// What an operator's functions see of a node: its record, resolved version and attributes.
struct NodeInfo {
  const OpDef* op = nullptr;
  const OpVersion* version = nullptr;  // resolved from the opset imported where the node was written
  Attributes attributes;
  // What the operator's own `parse` made of the attributes when the node got them; copies of the node share it.
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
  std::vector<Value*> outputs;               // null where a pass found that nobody wants it
  std::vector<std::unique_ptr<Node>> nodes;  // topologically sorted
  // What inference knew of `outputs` from the model alone, before the sizes of a run: a scan output without any trip
  // takes its sizes from here. Set once, when the model is loaded or the region is built by a lowering.
  std::vector<Type> output_types;

  Region* parent_region() const { return parent_node ? parent_node->parent : nullptr; }
  // Whether `inner` is this region or lies within it.
  bool contains(const Region* inner) const;
};

// Values that `region` (with everything nested in it) uses and an outer region defines; constants not included.
// Each once, in order of first use.
std::vector<Value*> captures(const Region& region);

// What a user can read about a model (get_modelmeta).
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
  // Initialisers that are also graph inputs: the caller may override them. Parallel to `top().inputs`;
  // an undefined tensor where the input has no default.
  std::vector<Tensor> input_defaults;
  std::string file;  // for messages

  Value* new_value(std::string_view name, Type type, Region* owner);
  Value* new_constant(std::string_view name, Tensor tensor);
  // An empty region of `node`, already linked.
  Region* new_region(Node* node, std::string attribute);
  // A node without inputs and outputs at position `index` (default: the end) of `region`.
  Node* new_node(Region* region, const OpDef* op, const OpVersion* version, std::string_view name,
                 size_t index = SIZE_MAX);
  void add_input(Node* node, Value* value) {  // null for one left out
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
  // Takes over all values of `other` and returns the nodes of its top region, now belonging to `into`. The caller maps
  // the inputs and outputs of other's top region to values of its own.
  std::vector<std::unique_ptr<Node>> splice(Graph& other, Region* into);
  // A deep copy; constants share their memory.
  std::unique_ptr<Graph> clone() const;
  void reserve_values(size_t count) { values_.reserve(values_.size() + count); }

 private:
  Value* make_value(std::string_view name, Region* owner);

  Arena arena_;
  std::unique_ptr<Region> top_;
  std::vector<Value*> values_;  // made in the arena, destroyed with the graph
};

// Appends copies of the nodes of `from` to `into`, which may belong to another graph. `map` takes values of the old
// graph to those of the new one: it must hold all that `from` uses but does not define, constants aside, and gets what
// is copied. Returns the copies of `from`'s outputs.
std::vector<Value*> inline_region(const Region& from, Region* into, std::unordered_map<const Value*, Value*>& map);

// Every use of a key, in every region, becomes a use of what it maps to (followed through chains).
void replace_uses(Graph& graph, const std::unordered_map<Value*, Value*>& map);
void replace_uses(Region& region, const std::unordered_map<Value*, Value*>& map);  // nested regions included
void replace_uses(Node& node, const std::unordered_map<Value*, Value*>& map);      // its regions included
size_t count_nodes(const Region& region);                                          // nested ones included

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

// For Value::Note::walk: a number that no walk has had, until there have been four billion.
uint32_t new_walk();

// Checks what every pass must keep: definitions before uses, links both ways, no use of a value of a region that is not
// around the user. kInternal with the place of the first violation.
Status verify(const Graph& graph);

}  // namespace treadle::ir
