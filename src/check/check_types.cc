// Every type against what operators take, and against what the model declares. A node that cannot be inferred does not
// end the check: what it makes counts as unknown, and nodes that need it are passed by.
#include <algorithm>
#include <deque>
#include <unordered_set>

#include "check/inference.h"
#include "check/types.h"
#include "model/import.h"
#include "op/registry.h"
#include "op/type_rules.h"

namespace treadle {

namespace {

std::string origin_of(const ir::Value& value) {
  if (value.producer) return fmt::format("{} is made by {}", quoted(value.name), node_place(*value.producer));
  const auto* region = value.owner;
  if (!region || std::ranges::find(region->inputs, &value) == region->inputs.end()) {
    return fmt::format("{} is a constant of the model", quoted(value.name));
  }
  if (!region->parent_node) return fmt::format("{} is an input of the graph", quoted(value.name));
  return fmt::format("{} is an input of the {} of {}", quoted(value.name), value.owner->attribute,
                     node_place(*value.owner->parent_node));
}

class TypeCheck {
 public:
  TypeCheck(ir::Graph& graph, const CheckOptions& options, Report& report)
      : graph_(graph), options_(options), report_(report) {}

  void run() {
    remember(graph_.top());
    for (auto& node : graph_.top().nodes) check(*node);
    for (const ir::Value* output : graph_.top().outputs) compare_with_declared(output, nullptr);
  }

 private:
  Diagnostic& add(Problem problem, const ir::Node* node, std::string message) {
    ++(info(problem).severity == Severity::kError ? report_.errors : report_.warnings);
    if (report_.diagnostics.size() >= options_.max_diagnostics) return beyond_limit_ = {};
    Diagnostic& d = report_.diagnostics.emplace_back();
    d.problem = problem;
    d.message = std::move(message);
    if (node) {
      d.path = node->name;
      d.op = fmt::format("{}-{}", node->op->name, node->version->since);
    }
    return d;
  }

  void remember(const ir::Region& region) {
    const auto keep = [&](const ir::Value* value) {
      if (!value || !value->type.is_known() || !declared_.emplace(value, declared_types_.size()).second) return;
      declared_types_.push_back(value->type);
    };
    for (const ir::Value* input : region.inputs) keep(input);
    for (const auto& node : region.nodes) {
      for (const ir::Value* output : node->outputs) keep(output);
      for (const auto& body : node->regions) remember(*body);
    }
  }

  // One of the top region, with its bodies.
  void check(ir::Node& node) {
    bool sound = check_constraints(node, node.inputs, true);
    for (const ir::Value* input : node.inputs) sound &= poisoned_.empty() || !poisoned_.contains(input);
    if (sound) {
      Status status = inference_.infer(node);
      sound = status.ok();
      if (!sound) report_failure(node, status);
    }
    if (!sound) {
      for (const ir::Value* output : node.outputs) {
        if (output && !declared_.contains(output)) poisoned_.insert(output);
      }
      return;
    }
    check_constraints(node, node.outputs, false);
    for (const ir::Value* output : node.outputs) compare_with_declared(output, &node);
    for (const auto& body : node.regions) check_inner(*body);
  }

  void check_inner(const ir::Region& body) {
    for (const auto& node : body.nodes) {
      check_constraints(*node, node->inputs, true);
      check_constraints(*node, node->outputs, false);
      for (const ir::Value* output : node->outputs) compare_with_declared(output, node.get());
      for (const auto& inner : node->regions) check_inner(*inner);
    }
    compare_states(body);
  }

  // Each argument's type is one of its formal's, and formals of one type variable agree: inputs first, then outputs.
  bool check_constraints(const ir::Node& node, std::span<ir::Value* const> values, bool are_inputs) {
    bool sound = true;
    if (are_inputs) rules_.begin(*node.version);
    for (size_t i = 0; i < values.size(); ++i) {
      const ir::Value* value = values[i];
      const Formal* formal = are_inputs ? node.version->input(i) : node.version->output(i);
      if (!value || !formal) continue;
      const auto violation = rules_.check(*formal, value->type, value->name);
      if (!violation) continue;
      report_violation(node, *value, *formal, i, are_inputs, *violation);
      sound = false;
    }
    return sound;
  }

  void report_violation(const ir::Node& node, const ir::Value& value, const Formal& formal, size_t i, bool is_input,
                        const TypeViolation& violation) {
    const std::string what = violation.rival.empty()
                                 ? "its type"
                                 : fmt::format("its type is another than that of {}", quoted(violation.rival));
    Diagnostic& d =
        add(Problem::kTypeConstraint, &node,
            fmt::format("{} {} ({}), {}: {}", is_input ? "input" : "output", i, formal.name, quoted(value.name), what));
    d.expected = violation.expected;
    d.found = value.type.to_string();
    if (is_input) d.origin = origin_of(value);
    if (is_input && value.type.is_tensor()) d.hint = "a Cast in front of it changes the type";
  }

  void report_failure(const ir::Node& node, const Status& status) {
    const Code code = status.code();
    const bool unable = code == Code::kNotImplemented || code == Code::kLimit;
    Diagnostic& d = add(unable ? Problem::kNotImplemented : Problem::kInference, &node, status.message());
    // "path (operator)" of the innermost node that failed.
    const std::string& place = status.place();
    const size_t bracket = place.rfind(" (");
    if (bracket == std::string::npos || place.back() != ')') return;
    d.path = place.substr(0, bracket);
    d.op = place.substr(bracket + 2, place.size() - bracket - 3);
    if (d.path == node.name) describe_inputs(node, d);
  }

  void describe_inputs(const ir::Node& node, Diagnostic& d) {
    constexpr size_t kMost = 4;
    std::string found;
    for (size_t i = 0; i < node.inputs.size() && i < kMost; ++i) {
      const ir::Value* value = node.inputs[i];
      if (!value) continue;
      if (!found.empty()) found += ", ";
      found += fmt::format("{} {}", quoted(value->name), value->type.to_string());
      if (value->producer && d.origin.empty()) d.origin = origin_of(*value);
    }
    if (d.found.empty() && !found.empty()) d.found = found;
  }

  void compare_with_declared(const ir::Value* value, const ir::Node* node) {
    if (!value || (!node && value->producer)) return;
    if (!value->type.is_known()) return;
    const size_t* index = declared_.find(value);
    if (!index) return;
    const Type& declared = declared_types_[*index];
    auto merged = merge(declared, value->type);
    if (merged.ok()) return;
    const bool inner = node && node->parent != &graph_.top();
    const bool shapes_only = same_structure(declared, value->type);
    Diagnostic& d = add(inner && shapes_only ? Problem::kShapeContradiction : Problem::kTypeContradiction, node,
                        fmt::format("{} is declared with another type than it has", quoted(value->name)));
    d.expected = declared.to_string() + " (declared)";
    d.found = value->type.to_string() + " (inferred)";
    if (!node) d.origin = origin_of(*value);
    declared_.erase(value);
  }

  // A state that came in with a size which inference had to give up: the body changes it.
  void compare_states(const ir::Region& body) {
    for (const ir::Value* input : body.inputs) {
      const size_t* index = declared_.find(input);
      if (!index) continue;
      const Type &declared = declared_types_[*index], &inferred = input->type;
      if (!declared.is_tensor() || !inferred.is_tensor() || !declared.has_shape) continue;
      bool changes = inferred.has_shape && inferred.shape.size() != declared.shape.size();
      for (size_t i = 0; !changes && inferred.has_shape && i < declared.shape.size(); ++i) {
        changes = declared.shape[i].is_known() && inferred.shape[i].is_known() &&
                  declared.shape[i].value() != inferred.shape[i].value();
      }
      if (!changes) continue;
      Diagnostic& d = add(Problem::kStateShape, body.parent_node,
                          fmt::format("input {} of the {} is declared with another shape than it has",
                                      quoted(input->name), body.attribute));
      d.expected = declared.to_string() + " (declared)";
      d.found = inferred.to_string() + " (inferred)";
    }
  }

  ir::Graph& graph_;
  const CheckOptions& options_;
  Report& report_;
  Inference inference_;
  PointerMap<ir::Value, size_t> declared_;  // index of the type
  std::deque<Type> declared_types_;
  std::unordered_set<const ir::Value*> poisoned_;  // unknown because what makes them failed
  TypeRules rules_{opaque_op().newest()};          // of the node at hand
  Diagnostic beyond_limit_;
};

}  // namespace

void check_types(const wire::ModelProto& model, const std::shared_ptr<wire::MappedFile>& file,
                 const CheckOptions& options, const model::NameUses* uses, Report& report) {
  model::ImportOptions import;
  import.folder = options.folder;
  import.for_types = true;
  import.name_uses = uses;
  auto graph = model::import_model(model, file, import);
  if (graph.ok()) return TypeCheck(**graph, options, report).run();
  const Status& status = graph.error();
  const bool unable = status.code() == Code::kNotImplemented || status.code() == Code::kLimit;
  Diagnostic& d = report.diagnostics.emplace_back();
  d.problem = unable ? Problem::kNotImplemented : Problem::kInference;
  d.message = status.message();
  std::string place = status.place();
  if (place.starts_with(file->path() + ": ")) place.erase(0, file->path().size() + 2);
  d.path = place;
  ++(unable ? report.warnings : report.errors);
}

}  // namespace treadle
