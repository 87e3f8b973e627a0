#pragma once
// The state of one check. The walk visits a model in its order. check_model.cc starts it; check_graph.cc checks names,
// check_node.cc operators and attributes, check_declared.cc types, check_tensor.cc and check_sparse.cc values,
// check_function.cc functions, check_extras.cc training and devices. surprises.cc has the warnings, loop_condition.h
// the analysis of loop conditions.

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/utf8.h"
#include "check/checker.h"
#include "check/external_files.h"
#include "check/loop_condition.h"
#include "check/name_table.h"
#include "model/name_uses.h"
#include "op/loop_signature.h"
#include "op/op_def.h"
#include "wire/devices.h"
#include "wire/training.h"

namespace treadle::checking {

// Domain to imported version; the key of "ai.onnx" is "".
using Imports = std::unordered_map<std::string_view, int64_t>;

// The operator or function that a node's name refers to under the imports of its graph or function.
struct Callee {
  const wire::FunctionProto* function = nullptr;
  const OpDef* op = nullptr;
  const OpVersion* version = nullptr;  // null: the imported operator set has no such operator
  int64_t opset = 0;                   // imported version of its domain; 0: not imported
  bool experimental = false;
  size_t min_inputs = 0, max_inputs = 0, min_outputs = 0, max_outputs = 0;

  // Whether the version exists and the operator was not removed with it. A version that a later one replaced is in
  // force for models that import it.
  bool in_force() const { return version && !(version->deprecated && version == &op->newest()); }
};

// Domain, name and overload of an operator or function, as the model writes them.
struct CalleeName {
  std::string_view domain, name, overload;

  friend bool operator==(const CalleeName&, const CalleeName&) = default;
};
struct CalleeNameHash {
  size_t operator()(const CalleeName& n) const {
    const uint64_t seed = process_seed();
    return hash_name(n.name, seed) ^ hash_name(n.domain, seed + 1) * 3 ^ hash_name(n.overload, seed + 2) * 5;
  }
};

// Names that the nodes of one graph or function may refer to.
struct Surroundings {
  Imports imports;
  const wire::FunctionProto* function = nullptr;
  std::unordered_set<std::string_view> parameters;  // attributes of the function
  std::unordered_map<CalleeName, Callee, CalleeNameHash> callees;
  // The most recent operators, by length and ends of their names: most nodes need no hash.
  struct Recent {
    CalleeName name;
    const Callee* callee = nullptr;
  };
  Recent recent[64];
};

// A graph, or the nodes of a function, around the walk's position.
struct Frame {
  const wire::List<wire::NodeProto>* nodes = nullptr;
  const wire::NodeProto* node = nullptr;  // null before and after the nodes
  std::string_view attribute;  // attribute of the enclosing frame's node, whose body this is; empty: a model's graph
  // By name, the node that makes it. Made when the first name is not found; further such names are then cheap.
  std::unordered_map<std::string_view, size_t> makers;
  model::NameUses::Numbers* numbers = nullptr;  // of a graph's names; null: not wanted
  bool has_makers = false;
  std::vector<int> circles;  // by node: nodes with the same number depend on each other; computed on first need
};

// Names that bodies define, each with the path of one of these bodies.
struct NamesInBodies {
  std::vector<std::string> paths;
  std::unordered_map<std::string_view, size_t> places;
};

// The role of a tensor in its model: "initializer" or "attribute", and a name. Formatted only for a report.
struct What {
  What(std::string_view of_kind, std::string_view of_name = {}) : kind(of_kind), name(of_name) {}  // NOLINT
  What(const char* of_kind) : kind(of_kind) {}                                                     // NOLINT
  std::string text() const;

  std::string_view kind, name;
};

class Walk : Functions {
 public:
  Walk(const wire::ModelProto* model, const wire::MappedFile* file, const CheckOptions& options, Report& report);

  // `uses` gets the uses of names.
  void check_model(model::NameUses* uses = nullptr);
  void check_tensor(const wire::TensorProto& tensor, What what);
  void check_sparse_tensor(const wire::SparseTensorProto& tensor, What what);
  void check_sequence(const wire::SequenceProto& sequence);
  void check_optional(const wire::OptionalProto& optional);
  void check_map(const wire::MapProto& map);

 private:
  // ---- check_model.cc
  void check_ir_version();
  void check_imports(const wire::List<wire::OperatorSetId>& imports, Imports& result);
  void check_metadata(const wire::List<wire::StringStringEntry>& entries, std::string_view whose);

  // A new entry of the list, with path and operator of the current node. An entry beyond the limit goes to a dummy.
  Diagnostic& add(Problem problem, std::string_view at = {});
  template <class... Args>
  Diagnostic& report(Problem problem, std::string_view at, fmt::format_string<Args...> format, Args&&... args) {
    Diagnostic& diagnostic = add(problem, at);
    diagnostic.message = fmt::format(format, std::forward<Args>(args)...);
    return diagnostic;
  }
  std::string path() const;
  std::string path_to(size_t frames) const;       // of the outermost `frames` frames only
  std::string path_of_graph(size_t depth) const;  // path of the graph of a frame, without the node
  std::string operator_text(const wire::NodeProto& node);
  // Sets the place where `name` is defined.
  void set_origin(Diagnostic& diagnostic, std::string_view name, const Definition& definition);
  void set_origin(Diagnostic& diagnostic, std::string text, std::string_view at);
  void check_text(std::string_view text, std::string_view what) {
    if (!is_utf8(text)) report_encoding(text, what);
  }
  void report_encoding(std::string_view text, std::string_view what);
  void note_feature(int64_t since, std::string_view at, std::string_view what);

  // ---- check_graph.cc
  void open_graph(const wire::GraphProto& graph, bool main);
  void close_graph();
  void check_inputs(const wire::GraphProto& graph, bool main);
  void check_initializers(const wire::GraphProto& graph);
  void compare_initializers(const wire::GraphProto& graph);
  void define_initializer(std::string_view name, const wire::TensorProto& tensor,
                          std::unordered_set<std::string_view>& seen);
  void check_nodes(const wire::List<wire::NodeProto>& nodes);
  void check_uses(const wire::NodeProto& node);
  void define_outputs(const wire::NodeProto& node);
  void check_graph_outputs(const wire::GraphProto& graph);
  void define(std::string_view name, DefinedBy by, const void* proto, std::string_view what);
  void note_number(uint32_t number) {
    if (auto* numbers = frames_.back().numbers) numbers->push_back(number);
  }
  void report_unknown(std::string_view name, size_t input);
  bool report_later(std::string_view name, size_t input, size_t frame);
  void suggest_name(Diagnostic& diagnostic, std::string_view name);
  const NamesInBodies& names_in_bodies();
  static void find_makers(Frame& frame);
  static void find_circles(Frame& frame);

  // ---- check_node.cc
  void check_node(const wire::NodeProto& node);
  const Callee* resolve(const wire::NodeProto& node);
  Callee make_callee(const CalleeName& name) const;
  void report_unresolved(const wire::NodeProto& node, const Callee& callee);
  void check_arguments(const wire::NodeProto& node, const Callee& callee);
  void check_attributes(const wire::NodeProto& node, const Callee& callee);
  void check_attribute_names(const wire::NodeProto& node);
  void check_attribute(const wire::AttributeProto& attribute);
  void check_attribute_contents(const wire::AttributeProto& attribute);
  void check_against_record(const wire::NodeProto& node, const Callee& callee);
  void check_against_function(const wire::NodeProto& node, const wire::FunctionProto& function);
  void report_unknown_attribute(const wire::AttributeProto& attribute, const Callee& callee);
  void check_bodies(const wire::NodeProto& node, const Callee& callee);
  size_t body_inputs(const wire::GraphProto& body) const;
  void check_signature(const wire::NodeProto& node, const Callee& callee, const wire::AttributeProto& attribute);
  void check_body(const wire::GraphProto& graph, std::string_view attribute);

  // ---- check_declared.cc, check_tensor.cc, check_sparse.cc
  void check_value_info(const wire::ValueInfoProto& value, bool main, std::string_view what);
  void check_value_type(const wire::ValueInfoProto& value);
  void check_type(const wire::TypeProto& type, bool whole, std::string_view at, std::string_view what);
  void check_element_type(int32_t number, bool required, std::string_view at, std::string_view what);
  bool check_element_count(const wire::TensorProto& tensor, What what, int64_t& count);
  void check_fields(const wire::TensorProto& tensor, What what, int64_t count);
  void check_raw(const wire::TensorProto& tensor, What what, ElementType type, int64_t count);
  void check_external(const wire::TensorProto& tensor, What what);
  void check_sparse_indices(const wire::SparseTensorProto& sparse, What what, int64_t count);

  // ---- check_function.cc
  void check_functions();
  void collect_functions();
  void check_function(const wire::FunctionProto& function);
  void check_function_outputs(const wire::FunctionProto& function);
  void check_calls();
  void check_function_opsets(const wire::FunctionProto& function, const Surroundings& surroundings);

  // ---- check_extras.cc
  void check_training(const wire::TrainingInfoProto& training, size_t index);
  void check_bindings(const wire::List<wire::StringStringEntry>& bindings, const wire::GraphProto* outputs,
                      const std::unordered_set<std::string_view>& initializers, std::string_view what);
  void check_configurations();
  void check_node_devices(const wire::NodeProto& node);
  void check_sharding(const wire::NodeProto& node, const wire::ShardingSpec& spec,
                      const wire::DeviceConfigurationProto* configuration);

  // ---- surprises.cc
  void warn_of_surprises(const wire::NodeProto& node, const Callee& callee);
  void warn_of_axes(const wire::NodeProto& node);
  void warn_of_pads(const wire::NodeProto& node);
  void warn_of_loop(const wire::NodeProto& node);
  bool is_false(std::string_view name);
  const wire::FunctionProto* function_of(const wire::NodeProto& node) const override;
  const Makers& makers_of(const wire::FunctionProto& function) override;
  void warn_of_states(const wire::GraphProto& body, const BeforeStates& first, size_t states);

  const wire::ModelProto* model_;
  const wire::MappedFile* file_;  // null: the bytes are not available
  const CheckOptions& options_;
  Report& report_;
  Diagnostic beyond_limit_;
  int64_t ir_version_ = 0;
  ExternalFiles external_files_;

  Surroundings main_;
  Surroundings* here_ = &main_;
  NameTable main_names_;
  NameTable* names_ = &main_names_;
  model::NameUses* uses_ = nullptr;  // null: not wanted
  std::vector<Frame> frames_;
  std::unordered_map<CalleeName, const wire::FunctionProto*, CalleeNameHash> functions_;
  std::unordered_map<std::string_view, wire::Parsed<wire::DeviceConfigurationProto>> configurations_;
  std::unordered_map<const wire::FunctionProto*, Makers> makers_;
  NamesInBodies names_in_bodies_;
  bool has_names_in_bodies_ = false;
  uint64_t features_noted_ = 0;  // one bit per IR version
};

// Whether a field is present, even if empty: the reader leaves absent fields without an address.
inline bool is_present(std::string_view field) {
  return field.data() != nullptr;
}
inline std::string_view canonical_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}
inline std::string_view shown_domain(std::string_view domain) {
  return domain.empty() ? "ai.onnx" : domain;
}
// As quoted(), without the quotes.
std::string bare(std::string_view text);
// The name of a node in paths: its own or, if it has none, operator and index.
std::string node_name(const wire::NodeProto& node, ptrdiff_t index);
// "1 input", "2 inputs".
std::string counted(size_t count, std::string_view noun);
std::string join_quoted(const std::vector<std::string_view>& names, size_t most = 12);
const wire::AttributeProto* find_attribute(const wire::NodeProto& node, std::string_view name);

}  // namespace treadle::checking
