#pragma once
// The state of one import. import_graph.cc walks graphs and names, import_initializers.cc reads initializers,
// import_node.cc makes nodes, import_loop.cc changes loops, import_call.cc inlines calls of functions.

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/name_map.h"
#include "model/attributes.h"
#include "model/functions.h"
#include "model/import.h"
#include "model/name_uses.h"
#include "model/tensor_reader.h"
#include "op/registry.h"

namespace treadle::model {

// The visible names: those of the graph itself, then those of the graphs around it. The value of a name may be null: an
// argument that the caller of a function left out.
class Scope {
 public:
  explicit Scope(const Scope* outer) : outer_(outer) {}

  // False if this scope has the name already.
  bool define(std::string_view name, ir::Value* value) { return values_.emplace(name, value).second; }
  bool defines(std::string_view name) const { return values_.contains(name); }
  // Null if there is no such name.
  ir::Value* const* find(std::string_view name) const {
    for (const Scope* scope = this; scope; scope = scope->outer_) {
      if (ir::Value* const* value = scope->values_.find(name)) return value;
    }
    return nullptr;
  }
  const Scope* outer() const { return outer_; }
  void reserve(size_t count) { values_.reserve(count); }

 private:
  const Scope* outer_;
  NameMap<ir::Value*> values_;
};

struct Environment;

// An attribute of a call, with its environment: a graph that is passed to a function refers to values, parameters and
// operator versions of the place where it was written.
struct Binding {
  const wire::AttributeProto* proto = nullptr;
  const Environment* environment = nullptr;
  const Scope* scope = nullptr;
};
using Bindings = std::unordered_map<std::string_view, Binding>;

// The environment of nodes apart from values.
struct Environment {
  const Opsets* opsets = nullptr;
  const Bindings* parameters = nullptr;           // null outside functions
  const wire::FunctionProto* function = nullptr;  // null outside functions
};

// Shortens a long text to its ends and a hash of the whole: names in a file may be of any length, and a function's
// names are repeated for every call.
std::string shortened(std::string text);
inline constexpr size_t kLongName = 1000;  // in bytes; longer texts are shortened

// Makes unique paths for the nodes of one graph or of one call of a function.
class NodePaths {
 public:
  explicit NodePaths(std::string_view prefix) : prefix_(prefix) {}
  // prefix + "/" + the node's name or, if it has none, operator and index. A name that is not harmless
  // (base/harmless.h) is escaped, since paths stand in texts for people.
  std::string make(const wire::NodeProto& node, size_t index);
  // The same without making it unique. `text`: storage that the result may use.
  std::string_view make_any(const wire::NodeProto& node, size_t index, std::string& text) const;
  const std::string& prefix() const { return prefix_; }
  void reserve(size_t count) { used_.reserve(count); }

 private:
  std::string prefix_;
  NameMap<int> used_;                // how many nodes have the name so far
  std::deque<std::string> made_up_;  // names that are not in the file
};

// Types that a graph declares for its values.
using DeclaredTypes = NameMap<const wire::TypeProto*>;
// The declared types by name. If a name is declared twice, the first declaration counts.
DeclaredTypes types_of(std::initializer_list<const wire::List<wire::ValueInfoProto>*> lists);

// For errors: input "x".
std::string quoted(std::string_view kind, std::string_view name);

// Where to add nodes, and how to look up their names.
struct ImportTarget {
  ir::Region* region;
  Scope& scope;
  const Environment& environment;
  NodePaths& paths;
  const DeclaredTypes& types;
  // Numbers of the names to come, from NameUses. `scope` then stays empty.
  const NameUses::Numbers* numbers = nullptr;
  size_t next_number = 0;

  // The next name's number; null if there is none.
  const uint32_t* take_number() { return next_number < numbers->size() ? &(*numbers)[next_number++] : nullptr; }
};

class Importer {
 public:
  // `sorts`: whether nodes may be in any order.
  Importer(const wire::ModelProto& model, const std::shared_ptr<wire::MappedFile>& file, const ImportOptions& options,
           bool sorts);
  const TensorReader& tensors() const { return tensors_; }
  // Whether run() failed at a value that a later node defines.
  bool unsorted() const { return unsorted_; }
  Result<std::unique_ptr<ir::Graph>> run();

 private:
  // import_graph.cc
  Status check_model();
  void read_metadata();
  Status import_top();
  Status import_inputs(const wire::GraphProto& proto, ImportTarget& target, std::vector<Tensor>* defaults);
  Status fix_denoted_sizes(const wire::ValueInfoProto& info, Type& type) const;
  Status import_outputs(const wire::GraphProto& proto, ImportTarget& target);
  Status import_body(const wire::GraphProto& proto, std::string_view path, ir::Region* region, const Scope* outer,
                     const Environment& environment);
  Status import_nodes(const wire::List<wire::NodeProto>& nodes, ImportTarget& target);
  static std::string_view needed_later(const wire::NodeProto& node, const wire::List<wire::NodeProto>& nodes,
                                       const ImportTarget& target);
  Status locate(Status status, const wire::NodeProto& node, std::string_view path, std::string_view later,
                const ImportTarget& target) const;
  Result<Type> declared_type(std::string_view name, const ImportTarget& target) {
    return declared_type(name, target.types.find(name), target);
  }
  // `declared`: the graph's declaration of it, or null.
  Result<Type> declared_type(std::string_view name, const wire::TypeProto* const* declared, const ImportTarget& target);
  Status define(std::string_view name, ir::Value* value, ImportTarget& target);
  // The name of a value in messages; in functions with the path of the call. `text`: storage that the result may use.
  std::string_view value_name(std::string_view name, const ImportTarget& target, std::string& text) const;
  std::string value_name(std::string_view name, const ImportTarget& target) const {
    std::string text;
    return std::string(value_name(name, target, text));
  }
  Result<ir::Value*> resolve(std::string_view name, ImportTarget& target);
  // The value of a name that is not empty; the pointed-to value is null for an argument that is left out.
  ir::Value* const* find(std::string_view name, ImportTarget& target) const {
    if (!target.numbers) return target.scope.find(name);
    const uint32_t* number = target.take_number();
    return number && values_[*number] ? &values_[*number] : nullptr;
  }
  const NameUses::Numbers* numbers_of(const wire::GraphProto& graph) const;

  // import_initializers.cc
  Result<bool> fits_declared(std::string_view name, const Type& type, const DeclaredTypes& inputs,
                             const ImportTarget& target);
  Status import_initializers(const wire::GraphProto& proto, ImportTarget& target);
  ImportOptions::GivenInitializer* given_initializer(std::string_view name) const;
  static Status fits_given(const wire::TensorProto& proto, const Tensor& given, const ImportTarget& target);
  // Whether only the tensor's type is needed.
  bool leaves_contents(const wire::TensorProto& proto) const;

  // import_node.cc
  Status import_node(const wire::NodeProto& node, std::string_view path, ImportTarget& target);
  Status import_constant(const wire::NodeProto& node, ImportTarget& target);
  Status import_operator(const wire::NodeProto& node, std::string_view path, ImportTarget& target);
  // Turns a node that could not be made into an opaque one.
  ir::Attribute shown_attribute(const wire::AttributeProto& proto);
  Status import_broken(Status status, const wire::NodeProto& node, std::string_view path, ImportTarget& target);
  Status import_attributes(const wire::NodeProto& proto, ir::Node* node, ImportTarget& target);
  Status read_attributes(const wire::NodeProto& proto, ir::Node* node, ImportTarget& target);
  Status import_attribute(const wire::AttributeProto& proto, ir::Node* node, ImportTarget& target);
  Status import_regions(const wire::NodeProto& proto, ir::Node* node, ImportTarget& target);
  void import_loop_conditions(ir::Node& loop, const ImportTarget& target);  // import_loop.cc
  Status define_outputs(const wire::NodeProto& proto, ir::Node* node, ImportTarget& target);
  Status find_operator(const wire::NodeProto& node, const ImportTarget& target, const OpDef*& op,
                       const OpVersion*& version);
  struct Resolved;
  Result<const Resolved*> resolve_operator(const wire::NodeProto& node, const ImportTarget& target);
  Status call_function(const wire::NodeProto& call, const Function& function, std::string_view path,
                       ImportTarget& target);
  Result<Bindings> bind_attributes(const wire::NodeProto& call, const wire::FunctionProto& function,
                                   const Environment& inner, const ImportTarget& target);
  Status bind_outputs(const wire::NodeProto& call, const wire::FunctionProto& function, const Scope& inner,
                      const std::vector<ir::Value*>& arguments, std::string_view path, ImportTarget& target);
  Result<ir::Value*> insert_identity(ir::Value* value, std::string_view path, ImportTarget& target);
  // The attribute itself, or the one to which the parameter of the enclosing function is bound (proto null: none).
  Result<Binding> resolve_attribute(const wire::AttributeProto& attribute, const ImportTarget& target);
  // Limits the growth by inlining; `cost` 1 is a node.
  Status count_inlined(size_t cost);
  Result<ir::Attribute> read_attribute_once(std::string_view name, const wire::AttributeProto& proto);

  const wire::ModelProto& model_;
  const ImportOptions& options_;
  const bool sorts_;
  bool unsorted_ = false;
  bool lacks_operator_ = false;            // the import failed or will fail at an operator that treadle does not have
  std::vector<std::string_view> implied_;  // domains in opsets_ that the model does not import; empty once such a
                                           // domain was used
  std::shared_ptr<wire::MappedFile> file_;
  TensorReader tensors_;
  std::unique_ptr<ir::Graph> graph_;
  Opsets opsets_;
  FunctionTable functions_;
  // Objects that may come again, read once and then shared: attributes while calls are inlined, and initialisers of
  // bodies.
  std::unordered_map<const wire::AttributeProto*, ir::Attribute> attributes_;
  std::unordered_map<const void*, Tensor> body_tensors_;
  std::vector<ir::Value*> values_;  // by number of their definition
  // The most recent operators, by length and ends of their names.
  struct Resolved {
    const Opsets* opsets = nullptr;
    std::string_view domain, name;
    const OpDef* op = nullptr;
    const OpVersion* version = nullptr;
    size_t required_inputs = 0;
    size_t places = 0;  // number of inputs before a variadic one that may be empty
  };
  Resolved resolved_[64];
  // Attributes of the most recent nodes: equal ones are read once.
  struct ReadAttributes {
    const OpVersion* version = nullptr;
    const wire::NodeProto* proto = nullptr;
    ir::Attributes attributes;
    std::shared_ptr<const void> parsed;
  };
  ReadAttributes* read_before(const wire::NodeProto& proto, const OpVersion* version);
  ReadAttributes read_attributes_[64];
  size_t inlined_ = 0;
  int depth_ = 0;
  int open_calls_ = 0;
};

}  // namespace treadle::model
