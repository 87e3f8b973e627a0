// Steps that replace a node by what it holds: a call by the nodes of its function, an If by a branch, a loop by one
// iteration of its body.

#include "reduce/in_place.h"
#include "reduce/lists.h"
#include "reduce/step.h"
#include "reduce/tensors.h"
#include "reduce/tidy.h"

namespace treadle::reduce {

namespace {

struct Site {
  size_t scope, node;
};

// Replaces nodes of one kind by the contents of a function or a body.
class InPlace : public Step {
 public:
  size_t count(wire::ModelProto& model) const override { return sites(model).size(); }
  bool apply(Candidate& candidate, size_t first, size_t last, size_t way) const override {
    const std::vector<Site> all = sites(candidate.model);
    const Names names(candidate.model);
    FreshNames fresh(names, candidate.arena);
    for (size_t i = last; i-- > first;) {  // later nodes first, so that the others stay where they are
      const wire::NodeProto& node = names.scopes()[all[i].scope].nodes()[all[i].node];
      InsteadOfNode instead(candidate, names, fresh, all[i].scope, all[i].node);
      if (!open(candidate, node, way, instead)) return false;
    }
    return tidy(candidate);
  }

 protected:
  virtual bool holds(const wire::ModelProto& model, const wire::NodeProto& node) const = 0;
  virtual bool open(Candidate& candidate, const wire::NodeProto& node, size_t way, InsteadOfNode& instead) const = 0;

 private:
  std::vector<Site> sites(wire::ModelProto& model) const {
    std::vector<Site> found;
    const std::vector<Scope> scopes = scopes_of(model);
    for (size_t s = 0; s < scopes.size(); ++s) {
      for (size_t n = 0; n < scopes[s].nodes().size(); ++n) {
        if (holds(model, scopes[s].nodes()[n])) found.push_back({s, n});
      }
    }
    return found;
  }
};

class Calls : public InPlace {
 public:
  const char* name() const override { return "calls of functions"; }

 private:
  static const wire::FunctionProto* callee(const wire::ModelProto& model, const wire::NodeProto& node) {
    for (const wire::FunctionProto& function : model.functions) {
      if (function.name == node.op_type && function.domain == node.domain && function.overload == node.overload) {
        return &function;
      }
    }
    return nullptr;
  }
  bool holds(const wire::ModelProto& model, const wire::NodeProto& node) const override {
    return callee(model, node) != nullptr;
  }
  bool open(Candidate& candidate, const wire::NodeProto& node, size_t, InsteadOfNode& instead) const override {
    const wire::FunctionProto& function = *callee(candidate.model, node);
    import_operators(candidate, function);
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      instead.give(function.inputs[i], i < node.inputs.size() ? node.inputs[i] : std::string_view());
    }
    for (size_t i = 0; i < function.outputs.size() && i < node.outputs.size(); ++i) {
      instead.take(function.outputs[i], node.outputs[i]);
    }
    return instead.put_function(function, node);
  }
  // The model imports the operator sets that the function imports.
  static void import_operators(Candidate& candidate, const wire::FunctionProto& function) {
    for (const wire::OperatorSetId& import : function.opset_imports) {
      bool has = false;
      for (const wire::OperatorSetId& own : candidate.model.opset_imports) has |= own.domain == import.domain;
      if (!has) candidate.model.opset_imports.add(candidate.arena, import);
    }
  }
};

class Branches : public InPlace {
 public:
  const char* name() const override { return "branches"; }
  size_t ways() const override { return 2; }

 private:
  bool holds(const wire::ModelProto&, const wire::NodeProto& node) const override { return is_of_onnx(node, "If"); }
  bool open(Candidate&, const wire::NodeProto& node, size_t way, InsteadOfNode& instead) const override {
    wire::GraphProto* branch = graph_attribute(node, way == 0 ? "then_branch" : "else_branch");
    if (!branch) return false;
    for (size_t i = 0; i < branch->outputs.size() && i < node.outputs.size(); ++i) {
      instead.take(branch->outputs[i].name, node.outputs[i]);
    }
    return instead.put_body(*branch);
  }
};

// Loops make one iteration: states have their initial values in it.
class LoopBodies : public InPlace {
 public:
  const char* name() const override { return "loops"; }

 private:
  bool holds(const wire::ModelProto&, const wire::NodeProto& node) const override { return is_of_onnx(node, "Loop"); }
  bool open(Candidate& candidate, const wire::NodeProto& node, size_t, InsteadOfNode& instead) const override {
    wire::GraphProto* body = graph_attribute(node, "body");
    if (!body || body->inputs.size() < 2 || body->outputs.empty()) return false;
    const int64_t first = 0;
    instead.give(body->inputs[0].name, int64s_of({&first, 1}, true, "iteration", candidate.arena));
    if (node.inputs.size() > 1 && !node.inputs[1].empty()) {
      instead.give(body->inputs[1].name, node.inputs[1]);
    } else {
      instead.give(body->inputs[1].name, bool_of(true, "condition", candidate.arena));
    }
    const size_t states = body->inputs.size() - 2;
    for (size_t i = 0; i < states; ++i) {
      instead.give(body->inputs[2 + i].name, 2 + i < node.inputs.size() ? node.inputs[2 + i] : std::string_view());
    }
    for (size_t i = 0; i + 1 < body->outputs.size() && i < node.outputs.size(); ++i) {
      const std::string_view inner = body->outputs[i + 1].name;
      i < states ? instead.take(inner, node.outputs[i]) : instead.take_row(inner, node.outputs[i], 0);
    }
    return instead.put_body(*body);
  }
};

class ScanBodies : public InPlace {
 public:
  const char* name() const override { return "scans"; }

 private:
  bool holds(const wire::ModelProto& model, const wire::NodeProto& node) const override {
    constexpr int64_t kWithoutBatch = 9;  // from this version on
    return is_of_onnx(node, "Scan") && opset_of(model) >= kWithoutBatch;
  }
  static int64_t axis_of(const wire::NodeProto& node, std::string_view list, size_t index) {
    const wire::AttributeProto* axes = find_attribute(node, list);
    return axes && index < axes->ints.size() ? axes->ints[index] : 0;
  }
  bool open(Candidate&, const wire::NodeProto& node, size_t, InsteadOfNode& instead) const override {
    wire::GraphProto* body = graph_attribute(node, "body");
    const auto scanned = static_cast<size_t>(int_attribute(node, "num_scan_inputs", 0));
    if (!body || body->inputs.size() != node.inputs.size() || scanned > node.inputs.size()) return false;
    const size_t states = node.inputs.size() - scanned;
    for (size_t i = 0; i < states; ++i) instead.give(body->inputs[i].name, node.inputs[i]);
    for (size_t i = 0; i < scanned; ++i) {
      instead.give_row(body->inputs[states + i].name, node.inputs[states + i], axis_of(node, "scan_input_axes", i));
    }
    for (size_t i = 0; i < body->outputs.size() && i < node.outputs.size(); ++i) {
      const std::string_view inner = body->outputs[i].name;
      if (i < states) {
        instead.take(inner, node.outputs[i]);
      } else {
        instead.take_row(inner, node.outputs[i], axis_of(node, "scan_output_axes", i - states));
      }
    }
    return instead.put_body(*body);
  }
};

}  // namespace

void add_body_steps(Steps& steps) {
  steps.push_back(std::make_unique<Calls>());
  steps.push_back(std::make_unique<Branches>());
  steps.push_back(std::make_unique<LoopBodies>());
  steps.push_back(std::make_unique<ScanBodies>());
}

}  // namespace treadle::reduce
