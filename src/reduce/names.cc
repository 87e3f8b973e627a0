#include "reduce/names.h"

#include <fmt/format.h>

namespace treadle::reduce {

namespace {

void add_bodies(std::vector<Scope>& scopes, size_t scope) {
  for (wire::NodeProto& node : scopes[scope].nodes()) {
    const auto add = [&](wire::GraphProto& body) {
      scopes.push_back({&body, nullptr, &node, scope});
      add_bodies(scopes, scopes.size() - 1);
    };
    for (wire::AttributeProto& attribute : node.attributes) {
      if (attribute.g) add(*attribute.g);
      for (wire::GraphProto& body : attribute.graphs) add(body);
    }
  }
}

}  // namespace

std::vector<Scope> scopes_of(wire::ModelProto& model) {
  std::vector<Scope> scopes;
  if (model.graph) {
    scopes.push_back({model.graph, nullptr, nullptr, kNoScope});
    add_bodies(scopes, 0);
  }
  for (wire::FunctionProto& function : model.functions) {
    scopes.push_back({nullptr, &function, nullptr, kNoScope});
    add_bodies(scopes, scopes.size() - 1);
  }
  return scopes;
}

bool is_of_onnx(const wire::NodeProto& node, std::string_view op_type) {
  return node.op_type == op_type && (node.domain.empty() || node.domain == "ai.onnx");
}

wire::AttributeProto* find_attribute(const wire::NodeProto& node, std::string_view name) {
  for (const wire::AttributeProto& attribute : node.attributes) {
    if (attribute.name == name) return const_cast<wire::AttributeProto*>(&attribute);
  }
  return nullptr;
}

int64_t int_attribute(const wire::NodeProto& node, std::string_view name, int64_t otherwise) {
  const wire::AttributeProto* attribute = find_attribute(node, name);
  return attribute ? attribute->i.value_or(otherwise) : otherwise;
}

wire::GraphProto* graph_attribute(const wire::NodeProto& node, std::string_view name) {
  const wire::AttributeProto* attribute = find_attribute(node, name);
  return attribute ? attribute->g : nullptr;
}

int64_t opset_of(const wire::ModelProto& model) {
  for (const wire::OperatorSetId& import : model.opset_imports) {
    if (import.domain.empty() || import.domain == "ai.onnx") return import.version;
  }
  return 1;
}

Names::Names(wire::ModelProto& model) : scopes_(scopes_of(model)), by_scope_(scopes_.size()) {
  for (size_t s = 0; s < scopes_.size(); ++s) {
    const Scope& scope = scopes_[s];
    if (scope.graph) {
      for (const wire::ValueInfoProto& input : scope.graph->inputs) define(s, input.name, Definition::kInput);
      for (const wire::TensorProto& tensor : scope.graph->initializers) {
        define(s, tensor.name, Definition::kInitializer);
      }
      for (const wire::SparseTensorProto& tensor : scope.graph->sparse_initializers) {
        define(s, tensor.values.name, Definition::kInitializer);
      }
    } else {
      for (const std::string_view input : scope.function->inputs) define(s, input, Definition::kInput);
    }
    for (size_t n = 0; n < scope.nodes().size(); ++n) {
      for (const std::string_view output : scope.nodes()[n].outputs) define(s, output, Definition::kNode, n);
    }
  }
}

void Names::define(size_t scope, std::string_view name, Definition::Kind kind, size_t node) {
  if (name.empty() || !by_scope_[scope].emplace(name, definitions_.size()).second) return;
  definitions_.push_back({name, scope, kind, node});
  ++counts_.value(counts_.emplace(name, 0).first);
}

const Definition* Names::find(size_t scope, std::string_view name) const {
  for (; scope != kNoScope; scope = scopes_[scope].outer) {
    if (const size_t* found = by_scope_[scope].find(name)) return &definitions_[*found];
  }
  return nullptr;
}

size_t Names::count(std::string_view name) const {
  const size_t* found = counts_.find(name);
  return found ? *found : 0;
}

FreshNames::FreshNames(const Names& names, Arena& arena) : arena_(arena) {
  for (const Definition& definition : names.definitions()) taken_.insert(definition.name);
}

std::string_view FreshNames::make(std::string_view like) {
  for (size_t i = 1;; ++i) {
    const std::string name = fmt::format("{}_{}", like, i);
    if (taken_.contains(name)) continue;
    const std::string_view kept = arena_.copy(name);
    taken_.insert(kept);
    return kept;
  }
}

}  // namespace treadle::reduce
