// Outputs, the tail of the graph, nodes, inputs.

#include <algorithm>
#include <unordered_set>

#include "reduce/lists.h"
#include "reduce/step.h"
#include "reduce/tidy.h"

namespace treadle::reduce {

namespace {

size_t count_nodes(wire::ModelProto& model) {
  size_t count = 0;
  for (const Scope& scope : scopes_of(model)) count += scope.nodes().size();
  return count;
}

class Outputs : public Step {
 public:
  const char* name() const override { return "outputs"; }
  size_t count(wire::ModelProto& model) const override { return model.graph ? model.graph->outputs.size() : 0; }
  bool apply(Candidate& candidate, size_t first, size_t last, size_t) const override {
    wire::List<wire::ValueInfoProto>& outputs = candidate.model.graph->outputs;
    if (last - first == outputs.size()) return false;
    erase_range(outputs, first, last);
    prune(candidate);
    return true;
  }
};

// Takes out all nodes of the graph from one on. What they read becomes outputs, so that everything before them still
// runs.
class Tail : public Step {
 public:
  const char* name() const override { return "nodes at the end"; }
  bool is_tail() const override { return true; }
  size_t count(wire::ModelProto& model) const override { return model.graph ? model.graph->nodes.size() : 0; }
  bool apply(Candidate& candidate, size_t first, size_t, size_t) const override {
    wire::ModelProto& model = candidate.model;
    const std::unordered_set<std::string_view> unread = unread_results(model);
    model.graph->nodes.truncate(first);
    {
      const Names names(model);
      erase_if(model.graph->outputs, [&](const auto& output) { return !names.find(0, output.name); });
    }
    show_unread(candidate, unread);
    return !model.graph->outputs.empty() && tidy(candidate);
  }
};

class Nodes : public Step {
 public:
  const char* name() const override { return "nodes"; }
  size_t ways() const override { return 4; }
  size_t count(wire::ModelProto& model) const override { return count_nodes(model); }
  bool apply(Candidate& candidate, size_t first, size_t last, size_t way) const override {
    const std::vector<Range> gone = by_scope(candidate.model, first, last);
    if (way == kPassOn) pass_on(candidate, gone);
    std::unordered_set<std::string_view> unread;
    if (way == kShow) unread = unread_results(candidate.model);
    const std::vector<Scope> scopes = scopes_of(candidate.model);
    for (size_t s = 0; s < scopes.size(); ++s) erase_range(scopes[s].nodes(), gone[s].first, gone[s].last);
    if (way != kShow) return tidy(candidate, way == kInputs ? Mend::kInput : Mend::kZeros);
    show_unread(candidate, unread);
    return mend(candidate, Mend::kZeros);
  }

 private:
  // By what a node's results are replaced: zeros; the first input of the node that has the same type; inputs of the
  // model; zeros, and what the node reads becomes outputs.
  enum Way : uint8_t { kZeros, kPassOn, kInputs, kShow };

  struct Range {
    size_t first, last;  // of nodes in a scope
    bool contains(size_t i) const { return i >= first && i < last; }
  };
  // Items [first, last) of the nodes of all scopes, one scope after the other.
  static std::vector<Range> by_scope(wire::ModelProto& model, size_t first, size_t last) {
    std::vector<Range> ranges;
    size_t begin = 0;
    for (const Scope& scope : scopes_of(model)) {
      const size_t size = scope.nodes().size();
      const auto inside = [&](size_t index) { return std::clamp(index, begin, begin + size) - begin; };
      ranges.push_back({inside(first), inside(last)});
      begin += size;
    }
    return ranges;
  }

  static void pass_on(Candidate& candidate, const std::vector<Range>& gone) {
    Replacements replacements(candidate);
    const Names& names = replacements.names();
    for (const Definition& definition : names.definitions()) {
      if (definition.kind != Definition::kNode || !gone[definition.scope].contains(definition.node)) continue;
      const wire::NodeProto& node = names.scopes()[definition.scope].nodes()[definition.node];
      const std::string_view by = input_like(candidate, node, definition.name);
      if (!by.empty()) replacements.add(definition, by);
    }
    replacements.apply();  // what it adds goes behind the nodes of its scope
  }

  static bool alike(const wire::TypeProto& a, const wire::TypeProto& b) {
    if (!a.tensor || !b.tensor) return !a.tensor == !b.tensor;
    if (a.tensor->elem_type.get() != b.tensor->elem_type.get()) return false;
    if (!a.tensor->shape || !b.tensor->shape) return true;
    const auto& x = a.tensor->shape->dims;
    const auto& y = b.tensor->shape->dims;
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i].value && y[i].value && *x[i].value != *y[i].value) return false;
    }
    return true;
  }
  // The node's first input that may have the type of the result.
  static std::string_view input_like(const Candidate& candidate, const wire::NodeProto& node, std::string_view result) {
    const wire::TypeProto* wanted = candidate.type_of(result);
    for (const std::string_view input : node.inputs) {
      if (input.empty()) continue;
      const wire::TypeProto* type = candidate.type_of(input);
      if (!wanted || !type || alike(*wanted, *type)) return input;
    }
    return {};
  }
};

// An input that is read becomes zeros; a sequence, which would become a node, stays.
class Inputs : public Step {
 public:
  const char* name() const override { return "inputs"; }
  size_t count(wire::ModelProto& model) const override { return model.graph ? model.graph->inputs.size() : 0; }
  bool apply(Candidate& candidate, size_t first, size_t last, size_t) const override {
    const size_t nodes = count_nodes(candidate.model);
    erase_range(candidate.model.graph->inputs, first, last);
    return tidy(candidate) && count_nodes(candidate.model) <= nodes;
  }
};

}  // namespace

void add_node_steps(Steps& steps) {
  steps.push_back(std::make_unique<Outputs>());
  steps.push_back(std::make_unique<Tail>());
  steps.push_back(std::make_unique<Nodes>());
  steps.push_back(std::make_unique<Inputs>());
}

}  // namespace treadle::reduce
