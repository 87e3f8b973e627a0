#pragma once
// The scopes of a model, the names that are defined in them, and what each use of a name refers to.

#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/name_map.h"
#include "wire/onnx.h"

namespace treadle::reduce {

inline constexpr size_t kNoScope = ~size_t{0};

// The model's graph, a body of a node, or a function.
struct Scope {
  wire::GraphProto* graph = nullptr;        // null for a function
  wire::FunctionProto* function = nullptr;  // null for a graph
  wire::NodeProto* owner = nullptr;         // the node whose body this is, or null
  size_t outer = kNoScope;                  // the scope around it

  wire::List<wire::NodeProto>& nodes() const { return graph ? graph->nodes : function->nodes; }
  bool is_body() const { return outer != kNoScope; }
};

// The model's graph first; each scope precedes the bodies in it. Pointers are valid until a list of nodes changes.
std::vector<Scope> scopes_of(wire::ModelProto& model);

bool is_of_onnx(const wire::NodeProto& node, std::string_view op_type);
wire::AttributeProto* find_attribute(const wire::NodeProto& node, std::string_view name);
int64_t int_attribute(const wire::NodeProto& node, std::string_view name, int64_t otherwise);
wire::GraphProto* graph_attribute(const wire::NodeProto& node, std::string_view name);
// The version of ai.onnx that the model imports; 1 if it imports none.
int64_t opset_of(const wire::ModelProto& model);

struct Definition {
  enum Kind : uint8_t { kInput, kInitializer, kNode };
  std::string_view name;
  size_t scope;
  Kind kind;
  size_t node;  // index in its scope, for kNode
};

// Valid until the model changes.
class Names {
 public:
  explicit Names(wire::ModelProto& model);

  const std::vector<Scope>& scopes() const { return scopes_; }
  const std::vector<Definition>& definitions() const { return definitions_; }
  // What `name` refers to in that scope; null if nothing defines it.
  const Definition* find(size_t scope, std::string_view name) const;
  size_t index_of(const Definition& definition) const { return static_cast<size_t>(&definition - definitions_.data()); }
  // How many definitions have this name, in all scopes.
  size_t count(std::string_view name) const;

  // Calls fn(size_t scope, std::string_view& name) for all inputs of nodes, then for all outputs of scopes. A function
  // that gives a name another text may be called while walking, since lookups go by the definitions at the beginning.
  template <class Fn>
  void for_each_use(Fn&& fn) const {
    for (size_t s = 0; s < scopes_.size(); ++s) {
      for (wire::NodeProto& node : scopes_[s].nodes()) {
        for (std::string_view& name : node.inputs) {
          if (!name.empty()) fn(s, name);
        }
      }
    }
    for (size_t s = 0; s < scopes_.size(); ++s) for_each_output(s, [&](std::string_view& name) { fn(s, name); });
  }
  // Calls fn(std::string_view& name) for the outputs of a graph or function.
  template <class Fn>
  void for_each_output(size_t scope, Fn&& fn) const {
    if (scopes_[scope].graph) {
      for (wire::ValueInfoProto& output : scopes_[scope].graph->outputs) fn(output.name);
    } else {
      for (std::string_view& output : scopes_[scope].function->outputs) fn(output);
    }
  }

 private:
  void define(size_t scope, std::string_view name, Definition::Kind kind, size_t node = 0);

  std::vector<Scope> scopes_;
  std::vector<Definition> definitions_;
  std::vector<NameMap<size_t>> by_scope_;  // name -> index in definitions_
  NameMap<size_t> counts_;
};

// Makes names that the model does not have yet.
class FreshNames {
 public:
  FreshNames(const Names& names, Arena& arena);
  std::string_view make(std::string_view like);

 private:
  Arena& arena_;
  std::unordered_set<std::string_view> taken_;
};

}  // namespace treadle::reduce
