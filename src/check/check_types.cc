// Compares every type with the operators' constraints and with the model's declarations. The check goes on behind a
// node that cannot be inferred: its outputs count as unknown, and errors that merely follow from this are not reported.
#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_set>

#include "check/types.h"
#include "infer/inference.h"
#include "model/import.h"
#include "model/node_finder.h"
#include "op/loop_view.h"
#include "op/place.h"
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

std::string_view name_at(const wire::List<std::string_view>& names, size_t i) {
  return i < names.size() ? names[i] : std::string_view();
}

// Maps the graph back to the text of a model.
class Written {
 public:
  Written(const wire::ModelProto& model, std::string_view text) : model_(model), text_(text), finder_(model) {}

  size_t offset_of(std::string_view part) const { return offset_in(text_, part); }
  std::string_view operator_at(std::string_view path) {
    const wire::NodeProto* node = finder_.find(path);
    return node ? node->op_type : std::string_view();
  }
  std::string_view input(const ir::Node& node, size_t i) {
    const wire::NodeProto* written = finder_.find(node.name);
    return written ? name_at(written->inputs, i) : std::string_view();
  }
  std::string_view definition(const ir::Value& value) {
    if (value.producer) {
      const wire::NodeProto* written = finder_.find(value.producer->name);
      return written ? name_at(written->outputs, value.output_index) : std::string_view();
    }
    const ir::Node* node = value.owner ? value.owner->parent_node : nullptr;
    const wire::NodeProto* written = node ? finder_.find(node->name) : nullptr;
    const wire::GraphProto* body = written ? model::NodeFinder::body(*written, value.owner->attribute) : nullptr;
    const wire::GraphProto& graph = body ? *body : *model_.graph;
    for (const wire::ValueInfoProto& info : graph.inputs) {
      if (info.name == value.name) return info.name;
    }
    for (const wire::TensorProto& tensor : graph.initializers) {
      if (tensor.name == value.name) return tensor.name;
    }
    return {};
  }

 private:
  const wire::ModelProto& model_;
  std::string_view text_;
  model::NodeFinder finder_;
};

class TypeCheck final : InferenceMonitor {
 public:
  // `written`: null for a binary model.
  TypeCheck(ir::Graph& graph, const CheckOptions& options, Written* written, Report& report)
      : graph_(graph),
        options_(options),
        written_(written),
        report_(report),
        inference_({.sizes_wait = true, .monitor = this}) {
    for (const Diagnostic& d : report.diagnostics) {
      if (d.severity() == Severity::kError && !d.path.empty()) wrong_.insert(d.path);
    }
  }

  void run() {
    remember(graph_.top());
    for (auto& node : graph_.top().nodes) {
      static_cast<void>(inference_.infer(*node).ok());  // failed() gets the errors
      check(*node);
    }
    for (const ir::Value* output : graph_.top().outputs) compare_with_declared(output, nullptr);
  }

  void report_broken(const Status& status) {
    Diagnostic& d = add(problem_of(status), nullptr, status.message());
    // the place ends with "path (operator)" of the innermost node that failed
    const std::string& place = status.place();
    const size_t bracket = place.rfind(" (");
    if (bracket == std::string::npos || place.back() != ')') {
      d.path = place;
      return;
    }
    d.path = place.substr(0, bracket);
    d.op = place.substr(bracket + 2, place.size() - bracket - 3);
    if (written_) point_at(d, written_->operator_at(d.path));
  }

 private:
  struct Failure {
    Status status;
    bool waits = false;  // the error is left to a run that reaches the node
  };

  static Problem problem_of(const Status& status) {
    const bool unable = status.code() == Code::kNotImplemented || status.code() == Code::kLimit;
    return unable ? Problem::kNotImplemented : Problem::kInference;
  }

  Diagnostic& add(Problem problem, const ir::Node* node, std::string message) {
    ++(info(problem).severity == Severity::kError ? report_.errors : report_.warnings);
    if (report_.diagnostics.size() >= options_.max_diagnostics) return beyond_limit_ = {};
    Diagnostic& d = report_.diagnostics.emplace_back();
    d.problem = problem;
    d.message = std::move(message);
    if (node) {
      d.path = node->name;
      d.op = fmt::format("{}-{}", node->op->name, node->version->since);
      if (written_) point_at(d, written_->operator_at(d.path));
    }
    return d;
  }

  void point_at(Diagnostic& d, std::string_view part) const {
    if (written_->offset_of(part) == kNoOffset) return;
    d.offset = written_->offset_of(part);
    d.length = part.size();
  }

  void set_origin(Diagnostic& d, const ir::Value& value) const {
    d.origin = origin_of(value);
    if (!written_) return;
    const std::string_view part = written_->definition(value);
    d.origin_offset = written_->offset_of(part);
    d.origin_length = part.size();
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

  bool allows(const ir::Node& node) override { return sound_ = check_constraints(node, node.inputs, true, false); }

  void failed(const ir::Node& node, Status status, bool waits) override {
    if (!failure_of_.emplace(&node, failures_.size()).second) return;
    failures_.push_back({std::move(status), waits});
  }

  // Checks the inferred types of a node and of its bodies, in the model's order.
  void check(const ir::Node& node) {
    const bool sound = bound_ == &node && sound_ ? sound_ : check_constraints(node, node.inputs, true, true);
    const size_t* failure = failure_of_.find(&node);
    if (sound && !failure) {
      check_constraints(node, node.outputs, false, true);
      for (const ir::Value* output : node.outputs) compare_with_declared(output, &node);
    }
    if (sound && failure_of_.empty() && doubtful_.empty() && node.regions.empty()) return;
    const size_t own = report_.diagnostics.size();
    bool doubtful = std::ranges::any_of(node.inputs, [&](const auto* value) { return doubtful_.contains(value); });
    for (const auto& body : node.regions) doubtful |= check_body(*body, doubtful);
    const size_t inner = report_.diagnostics.size();
    const bool is_new = wrong_.empty() || !wrong_.contains(std::string(node.name));
    if (sound && failure && !doubtful && is_new) report_failure(node, failures_[*failure]);
    const auto diagnostics = report_.diagnostics.begin();
    std::rotate(diagnostics + static_cast<ptrdiff_t>(own), diagnostics + static_cast<ptrdiff_t>(inner),
                report_.diagnostics.end());
    if (doubtful || failure || !sound) doubt(node.outputs);
  }

  // Checks a body. `doubtful`: types of its inputs may be wrong. Returns whether types of its results may be wrong.
  bool check_body(const ir::Region& body, bool doubtful) {
    if (doubtful) doubt(body.inputs);
    for (const auto& node : body.nodes) check(*node);
    compare_states(body);
    return std::ranges::any_of(body.outputs, [&](const auto* value) { return doubtful_.contains(value); });
  }

  // Marks values as unknown because of an error that has been reported.
  void doubt(std::span<ir::Value* const> values) {
    for (const ir::Value* value : values) {
      if (value && !is_complete(value->type)) doubtful_.insert(value);
    }
  }

  // Checks that each argument's type is allowed, and that arguments of one type variable agree: inputs first, then
  // outputs.
  bool check_constraints(const ir::Node& node, std::span<ir::Value* const> values, bool are_inputs, bool aloud) {
    bool sound = true;
    if (are_inputs) {
      rules_.begin(*node.version);
      bound_ = &node;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const ir::Value* value = values[i];
      const Formal* formal = are_inputs ? node.version->input(i) : node.version->output(i);
      if (!value || !formal) continue;
      const auto violation = rules_.check(*formal, value->type, value->name);
      if (!violation) continue;
      if (aloud) report_violation(node, *value, *formal, i, are_inputs, *violation);
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
    if (written_) point_at(d, is_input ? written_->input(node, i) : written_->definition(value));
    if (is_input) set_origin(d, value);
    if (is_input && value.type.is_tensor()) d.hint = "a Cast in front of it changes the type";
  }

  void report_failure(const ir::Node& node, const Failure& failure) {
    const Problem problem = failure.waits ? Problem::kSizesInBody : problem_of(failure.status);
    Diagnostic& d = add(problem, &node, failure.status.message());
    if (node.regions.empty()) describe_inputs(node, d);
    if (failure.waits) d.hint = "a run that reaches this node fails; one that does not gives its results";
  }

  void describe_inputs(const ir::Node& node, Diagnostic& d) {
    constexpr size_t kMost = 4;
    std::string found;
    for (size_t i = 0; i < node.inputs.size() && i < kMost; ++i) {
      const ir::Value* value = node.inputs[i];
      if (!value) continue;
      if (!found.empty()) found += ", ";
      found += fmt::format("{} {}", quoted(value->name), value->type.to_string());
      if (value->producer && d.origin.empty()) set_origin(d, *value);
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
    if (written_) point_at(d, written_->definition(*value));
    if (!node) d.origin = origin_of(*value);
    declared_.erase(value);
  }

  // Reports a state whose declared type contradicts the type inferred in the body, or the type of the initial value:
  // the body changes it.
  void compare_states(const ir::Region& body) {
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      const ir::Value* input = body.inputs[i];
      const size_t* index = declared_.find(input);
      if (!index) continue;
      const Type& declared = declared_types_[*index];
      if (!declared.is_tensor() || !declared.has_shape) continue;
      const ir::Value* outer = state_outside(body, i);
      if (contradicts(declared, input->type)) {
        report_state(body, *input, declared, input->type.to_string() + " (inferred)", nullptr);
      } else if (outer && contradicts(declared, outer->type)) {
        report_state(body, *input, declared, outer->type.to_string() + " (before the first iteration)", outer);
      }
    }
  }

  static bool contradicts(const Type& declared, const Type& found) {
    return found.is_tensor() && found.element == declared.element && !merge(declared, found).ok();
  }

  // The state's value before the first iteration; null for other inputs of bodies.
  static const ir::Value* state_outside(const ir::Region& body, size_t i) {
    const ir::Node& node = *body.parent_node;
    if (!is_loop(node) || (node.op->control == Control::kScan && node.version->since < 9)) return nullptr;
    const auto loop = LoopView::read(node);
    const size_t state = loop.ok() ? loop->state_before(body.inputs[i]) : 0;
    return loop.ok() && state < loop->states() ? loop->state(state).initial : nullptr;
  }

  void report_state(const ir::Region& body, const ir::Value& input, const Type& declared, std::string found,
                    const ir::Value* outer) {
    Diagnostic& d = add(Problem::kStateShape, body.parent_node,
                        fmt::format("input {} of the {} is declared with another shape than it has", quoted(input.name),
                                    body.attribute));
    if (written_) point_at(d, written_->definition(input));
    d.expected = declared.to_string() + " (declared)";
    d.found = std::move(found);
    if (outer) set_origin(d, *outer);
  }

  ir::Graph& graph_;
  const CheckOptions& options_;
  Written* written_;
  Report& report_;
  Inference inference_;
  PointerMap<ir::Value, size_t> declared_;  // index of the declared type
  std::deque<Type> declared_types_;
  PointerMap<ir::Node, size_t> failure_of_;  // index of the node's first failure
  std::deque<Failure> failures_;
  std::unordered_set<const ir::Value*> doubtful_;
  std::unordered_set<std::string> wrong_;  // paths of nodes with errors that are not about types
  TypeRules rules_{opaque_op().newest()};
  const ir::Node* bound_ = nullptr;  // the node whose rules are in rules_
  bool sound_ = true;                // whether its inputs are right
  Diagnostic beyond_limit_;
};

}  // namespace

void check_types(const wire::ModelProto& model, const std::shared_ptr<wire::MappedFile>& file,
                 const CheckOptions& options, const model::NameUses* uses, const WrittenModel* written,
                 Report& report) {
  model::ImportOptions import;
  import.folder = options.folder;
  import.for_types = true;
  import.unique_paths = written != nullptr;
  import.name_uses = uses;
  const bool was_ok = report.ok();
  // A strict reading comes first; only a wrong model needs a second, lenient one.
  std::vector<Status> broken;
  Result<std::unique_ptr<ir::Graph>> graph(error(Code::kInvalidModel, "the model is wrong"));
  if (was_ok) graph = model::import_model(model, file, import);
  if (!graph.ok() && graph.error().code() != Code::kLimit) {
    constexpr size_t kMostInlined = 100'000;
    import.max_inlined_nodes = kMostInlined;
    import.name_uses = nullptr;
    import.broken = &broken;
    graph = model::import_model(model, file, import);
  }
  std::optional<Written> places;
  if (written) places.emplace(written->model, written->text);
  if (graph.ok()) {
    TypeCheck check(**graph, options, places ? &*places : nullptr, report);
    if (was_ok) {
      for (const Status& status : broken) check.report_broken(status);
    }
    return check.run();
  }
  if (!was_ok) return;  // the errors that keep it from being read have been reported
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
