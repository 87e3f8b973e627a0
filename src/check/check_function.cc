// Functions that a model defines: names are unique, calls form no circle, and bodies are graphs without outer names.
#include <algorithm>

#include "base/spelling.h"
#include "check/walk.h"
#include "model/functions.h"
#include "op/registry.h"

namespace treadle::checking {

using model::function_name;

void Walk::collect_functions() {
  if (!model_->functions.empty()) note_feature(8, model_->functions[0].name, "functions");
  for (const wire::FunctionProto& function : model_->functions) {
    const std::string_view domain = canonical_domain(function.domain);
    if (!functions_.emplace(CalleeName{domain, function.name, function.overload}, &function).second) {
      report(Problem::kFunctionDuplicate, function.name, "two functions are called {}",
             quoted(function_name(function)));
    } else if (find_op(domain, function.name)) {
      report(Problem::kFunctionHides, function.name, "function {} has the name of an operator, which it replaces",
             quoted(function_name(function)));
    }
  }
}

void Walk::check_functions() {
  check_calls();
  for (const wire::FunctionProto& function : model_->functions) check_function(function);
}

void Walk::check_function(const wire::FunctionProto& function) {
  Surroundings surroundings;
  surroundings.function = &function;
  NameTable names;
  here_ = &surroundings;
  names_ = &names;
  has_names_in_bodies_ = false;
  names.enter();
  frames_.emplace_back().nodes = &function.nodes;

  if (function.name.empty()) report(Problem::kNameMissing, {}, "a function has no name");
  if (ir_version_ >= 8 && !is_present(function.domain)) {
    report(Problem::kNameMissing, function.name, "function {} has no domain", quoted(function.name));
  }
  check_text(function.name, "a function's name");
  check_imports(function.opset_imports, surroundings.imports);
  check_metadata(function.metadata_props, "the function's");
  if (!function.overload.empty()) note_feature(10, function.overload, "an overload");
  const auto check_parameter = [&](std::string_view name) {
    if (surroundings.parameters.insert(name).second) return;
    report(Problem::kAttributeDuplicate, name, "two attributes of the function are called {}", quoted(name));
  };
  for (const std::string_view name : function.attributes) check_parameter(name);
  for (const wire::AttributeProto& attribute : function.attribute_protos) {
    check_parameter(attribute.name);
    check_attribute(attribute);
  }
  for (const std::string_view name : function.inputs) define(name, DefinedBy::kInput, nullptr, "input");
  check_nodes(function.nodes);
  check_function_outputs(function);
  if (!options_.skip_opset_compatibility) check_function_opsets(function, surroundings);

  names.leave([](std::string_view, const Definition&) {});
  frames_.pop_back();
  here_ = &main_;
  names_ = &main_names_;
}

void Walk::check_function_outputs(const wire::FunctionProto& function) {
  std::unordered_set<std::string_view> seen;
  for (const std::string_view name : function.outputs) {
    if (!seen.insert(name).second) {
      report(Problem::kNameDuplicate, name, "two outputs of the function are called {}", quoted(name));
    } else if (!names_->find(name).exists()) {
      suggest_name(report(Problem::kOutputUnknown, name, "nothing in the function makes its output {}", quoted(name)),
                   name);
    }
  }
}

// A function may import another operator set than its model if the operators that it uses are the same in both.
void Walk::check_function_opsets(const wire::FunctionProto& function, const Surroundings& surroundings) {
  for (const wire::NodeProto& node : function.nodes) {
    const auto mine = surroundings.imports.find(canonical_domain(node.domain));
    const auto models = main_.imports.find(canonical_domain(node.domain));
    if (mine == surroundings.imports.end() || models == main_.imports.end() || mine->second == models->second) continue;
    const Callee& callee = *resolve(node);
    if (!callee.op || callee.function || callee.version == callee.op->version_for(models->second)) continue;
    frames_.back().node = &node;
    Diagnostic& d = report(Problem::kFunctionOpset, {},
                           "the function imports operator set {}, in which {} is not what it is in the model's",
                           mine->second, node.op_type);
    d.expected = fmt::format("operator set {}", models->second);
    frames_.back().node = nullptr;
  }
}

// ---- Calls

namespace {

// Functions by index in the model; for each, the functions that it calls, also in bodies.
using Calls = std::vector<std::vector<size_t>>;
using Places = std::unordered_map<CalleeName, size_t, CalleeNameHash>;

void collect_calls(const wire::List<wire::NodeProto>& nodes, const Places& places, std::vector<size_t>& calls) {
  for (const wire::NodeProto& node : nodes) {
    const auto callee = places.find({canonical_domain(node.domain), node.op_type, node.overload});
    if (callee != places.end()) calls.push_back(callee->second);
    for (const wire::AttributeProto& attribute : node.attributes) {
      if (attribute.g) collect_calls(attribute.g->nodes, places, calls);
      for (const wire::GraphProto& graph : attribute.graphs) collect_calls(graph.nodes, places, calls);
    }
  }
}

std::string circle_text(const wire::List<wire::FunctionProto>& functions, const std::vector<size_t>& path,
                        size_t again) {
  constexpr size_t kMostNames = 12;
  std::string text;
  size_t shown = 0;
  for (auto it = std::find(path.begin(), path.end(), again); it != path.end(); ++it) {
    if (++shown > kMostNames) return text + "... -> " + function_name(functions[again]);
    text += function_name(functions[*it]) + " -> ";
  }
  return text + function_name(functions[again]);
}

}  // namespace

void Walk::check_calls() {
  constexpr size_t kMaxDepth = 100;
  const auto& functions = model_->functions;
  if (functions.empty()) return;
  Places places;
  for (size_t i = 0; i < functions.size(); ++i) {
    places.emplace(CalleeName{canonical_domain(functions[i].domain), functions[i].name, functions[i].overload}, i);
  }
  Calls calls(functions.size());
  for (size_t i = 0; i < functions.size(); ++i) {
    collect_calls(functions[i].nodes, places, calls[i]);
    std::sort(calls[i].begin(), calls[i].end());
    calls[i].erase(std::unique(calls[i].begin(), calls[i].end()), calls[i].end());
  }
  // Depth-first search with an explicit stack. When a function is done, the longest chain of calls below it is known.
  enum class Mark : uint8_t { kNew, kOpen, kDone };
  std::vector<Mark> marks(functions.size(), Mark::kNew);
  std::vector<size_t> chain(functions.size(), 1), next(functions.size(), 0), path;
  for (size_t root = 0; root < functions.size(); ++root) {
    if (marks[root] == Mark::kNew) path.push_back(root);
    while (!path.empty()) {
      const size_t caller = path.back();
      marks[caller] = Mark::kOpen;
      if (next[caller] < calls[caller].size()) {
        const size_t callee = calls[caller][next[caller]++];
        if (marks[callee] == Mark::kNew) {
          path.push_back(callee);
        } else if (marks[callee] == Mark::kOpen) {
          report(Problem::kFunctionCycle, functions[caller].name, "functions must not call themselves: {}",
                 quoted(circle_text(functions, path, callee)))
              .hint = "recursion has to be a Loop";
        } else {
          chain[caller] = std::max(chain[caller], chain[callee] + 1);
        }
        continue;
      }
      marks[caller] = Mark::kDone;
      path.pop_back();
      if (!path.empty()) chain[path.back()] = std::max(chain[path.back()], chain[caller] + 1);
    }
    if (chain[root] == kMaxDepth + 1) {
      Diagnostic& d = report(Problem::kFunctionDepth, functions[root].name, "calls of functions from {} on are nested",
                             quoted(function_name(functions[root])));
      d.expected = fmt::format("at most {} deep", kMaxDepth);
      d.found = fmt::format("{}", chain[root]);
    }
  }
}

}  // namespace treadle::checking
