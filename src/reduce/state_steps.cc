// Steps on the states, scan inputs and scan outputs of loops, and on the results of branches.

#include "reduce/lists.h"
#include "reduce/step.h"
#include "reduce/tidy.h"

namespace treadle::reduce {

namespace {

// A part of a control-flow node that can go, together with what belongs to it in the node's bodies.
struct Part {
  enum Kind : uint8_t { kState, kScanOutput, kScanInput, kBranchOutput };
  size_t scope, node;
  Kind kind;
  size_t index;  // among the parts of its kind
};

// Where the lists of a Loop or Scan have states, slices and conditions.
struct LoopLists {
  wire::NodeProto& node;
  wire::GraphProto& body;
  size_t node_first, body_first, output_first;  // of the states: in the node's inputs, the body's inputs and outputs
  size_t states, scan_inputs, scan_outputs;
};

std::optional<LoopLists> lists_of(wire::NodeProto& node) {
  wire::GraphProto* body = graph_attribute(node, "body");
  if (!body) return std::nullopt;
  const bool is_loop = is_of_onnx(node, "Loop");
  if (!is_loop && !is_of_onnx(node, "Scan")) return std::nullopt;
  const size_t head = is_loop ? 2 : 0, condition = is_loop ? 1 : 0;
  const auto scanned = is_loop ? size_t{0} : static_cast<size_t>(int_attribute(node, "num_scan_inputs", 0));
  if (body->inputs.size() < head + scanned || node.inputs.size() < body->inputs.size()) return std::nullopt;
  const size_t states = body->inputs.size() - head - scanned;
  if (body->outputs.size() < condition + states) return std::nullopt;
  return LoopLists{node, *body, head, head, condition, states, scanned, body->outputs.size() - condition - states};
}

void add_parts_of_node(std::vector<Part>& parts, wire::NodeProto& node, size_t s, size_t n) {
  if (is_of_onnx(node, "If") && node.outputs.size() > 1) {
    for (size_t i = 0; i < node.outputs.size(); ++i) parts.push_back({s, n, Part::kBranchOutput, i});
  }
  const std::optional<LoopLists> lists = lists_of(node);
  if (!lists) return;
  for (size_t i = 0; i < lists->states; ++i) parts.push_back({s, n, Part::kState, i});
  for (size_t i = 0; i < lists->scan_outputs; ++i) parts.push_back({s, n, Part::kScanOutput, i});
  if (lists->scan_inputs < 2) return;  // a Scan needs one
  for (size_t i = 0; i < lists->scan_inputs; ++i) parts.push_back({s, n, Part::kScanInput, i});
}

std::vector<Part> parts_of(wire::ModelProto& model) {
  std::vector<Part> parts;
  const std::vector<Scope> scopes = scopes_of(model);
  for (size_t s = 0; s < scopes.size(); ++s) {
    for (size_t n = 0; n < scopes[s].nodes().size(); ++n) add_parts_of_node(parts, scopes[s].nodes()[n], s, n);
  }
  return parts;
}

void erase_of_list(const wire::NodeProto& node, std::string_view attribute, size_t index) {
  if (wire::AttributeProto* list = find_attribute(node, attribute)) erase_at(list->ints, index);
}

void erase_part(wire::NodeProto& node, const Part& part) {
  if (part.kind == Part::kBranchOutput) {
    erase_at(node.outputs, part.index);
    for (const wire::AttributeProto& attribute : node.attributes) {
      if (attribute.g) erase_at(attribute.g->outputs, part.index);
    }
    return;
  }
  const LoopLists lists = *lists_of(node);
  switch (part.kind) {
    case Part::kState:
      erase_at(node.inputs, lists.node_first + part.index);
      erase_at(lists.body.inputs, lists.body_first + part.index);
      erase_at(lists.body.outputs, lists.output_first + part.index);
      erase_at(node.outputs, part.index);
      break;
    case Part::kScanOutput:
      erase_at(lists.body.outputs, lists.output_first + lists.states + part.index);
      erase_at(node.outputs, lists.states + part.index);
      erase_of_list(node, "scan_output_axes", part.index);
      erase_of_list(node, "scan_output_directions", part.index);
      break;
    default:
      erase_at(node.inputs, lists.node_first + lists.states + part.index);
      erase_at(lists.body.inputs, lists.body_first + lists.states + part.index);
      erase_of_list(node, "scan_input_axes", part.index);
      erase_of_list(node, "scan_input_directions", part.index);
      find_attribute(node, "num_scan_inputs")->i = static_cast<int64_t>(lists.scan_inputs - 1);
      break;
  }
}

class Parts : public Step {
 public:
  const char* name() const override { return "states and results of loops"; }
  size_t count(wire::ModelProto& model) const override { return parts_of(model).size(); }
  bool apply(Candidate& candidate, size_t first, size_t last, size_t) const override {
    const std::vector<Part> parts = parts_of(candidate.model);
    Replacements replacements(candidate);
    for (size_t i = first; i < last; ++i) {
      if (parts[i].kind == Part::kState) keep_first_value(replacements, parts[i]);
    }
    replacements.apply();
    const std::vector<Scope> scopes = scopes_of(candidate.model);
    for (size_t i = last; i-- > first;) {
      wire::NodeProto& node = scopes[parts[i].scope].nodes()[parts[i].node];
      const bool is_last = parts[i].kind == Part::kScanInput
                               ? lists_of(node)->scan_inputs < 2
                               : parts[i].kind == Part::kBranchOutput && node.outputs.size() < 2;
      if (is_last) return false;
      erase_part(node, parts[i]);
    }
    return tidy(candidate);
  }

 private:
  // Its initial value replaces the state, inside the loop and behind it.
  static void keep_first_value(Replacements& replacements, const Part& part) {
    const Names& names = replacements.names();
    wire::NodeProto& node = names.scopes()[part.scope].nodes()[part.node];
    const LoopLists lists = *lists_of(node);
    const std::string_view first = node.inputs[lists.node_first + part.index];
    if (first.empty()) return;
    const auto replace = [&](size_t scope, std::string_view name) {
      const Definition* definition = name.empty() ? nullptr : names.find(scope, name);
      if (definition && definition->scope == scope) replacements.add(*definition, first);
    };
    for (size_t s = part.scope + 1; s < names.scopes().size(); ++s) {
      if (names.scopes()[s].graph == &lists.body) replace(s, lists.body.inputs[lists.body_first + part.index].name);
    }
    if (part.index < node.outputs.size()) replace(part.scope, node.outputs[part.index]);
  }
};

}  // namespace

void add_state_steps(Steps& steps) {
  steps.push_back(std::make_unique<Parts>());
}

}  // namespace treadle::reduce
