// Names, descriptions, and what nobody reads.

#include <array>
#include <unordered_set>

#include "reduce/lists.h"
#include "reduce/step.h"
#include "wire/clone.h"

namespace treadle::reduce {

namespace {

// Calls change(message) for a message and all messages in it.
template <class Change>
class Messages {
 public:
  explicit Messages(Change change) : change_(change) {}
  template <class T>
  void operator()(uint32_t, std::string_view, T& member) {
    visit(member);
  }
  template <class T>
  void visit(T& member) {
    if constexpr (wire::HasFields<T>) {
      change_(member);
      T::fields(member, *this);
    }
  }
  template <class T>
  void visit(std::optional<T>& member) {
    if (member) visit(*member);
  }
  template <class T>
  void visit(T*& member) {
    if (member) visit(*member);
  }
  template <class T>
  void visit(wire::List<T>& members) {
    for (T& member : members) visit(member);
  }

 private:
  Change change_;
};

template <class Change>
void for_each_message(wire::ModelProto& model, Change change) {
  Messages<Change>(change).visit(model);
}

void drop_descriptions(wire::ModelProto& model) {
  for_each_message(model, [](auto& message) {
    if constexpr (requires { message.doc_string; }) message.doc_string = {};
    if constexpr (requires { message.metadata_props; }) message.metadata_props = {};
    if constexpr (requires { message.denotation; }) message.denotation = {};
  });
}
void drop_origin(wire::ModelProto& model) {
  model.producer_name = model.producer_version = model.domain = {};
  model.model_version = {};
}
void drop_declared_types(wire::ModelProto& model) {
  for_each_message(model, [](auto& message) {
    if constexpr (requires { message.value_infos; }) message.value_infos.clear();
  });
}
void drop_types_of_outputs(wire::ModelProto& model) {
  for (const Scope& scope : scopes_of(model)) {
    if (!scope.graph || !scope.is_body()) continue;
    for (wire::ValueInfoProto& output : scope.graph->outputs) output.type.reset();
  }
}
void drop_names_of_nodes(wire::ModelProto& model) {
  for (const Scope& scope : scopes_of(model)) {
    for (wire::NodeProto& node : scope.nodes()) node.name = {};
  }
}
void drop_training(wire::ModelProto& model) {
  model.training_infos.clear();
  model.configurations.clear();
  for_each_message(model, [](auto& message) {
    if constexpr (requires { message.device_configurations; }) message.device_configurations.clear();
    if constexpr (requires { message.quantization_annotations; }) message.quantization_annotations.clear();
  });
}
void drop_unknown_fields(wire::ModelProto& model) {
  for_each_message(model, [](auto& message) { message.unknown = {}; });
}
void drop_unread_initializers(wire::ModelProto& model) {
  std::unordered_set<std::string_view> read;
  Names(model).for_each_use([&](size_t, std::string_view name) { read.insert(name); });
  for (const Scope& scope : scopes_of(model)) {
    if (!scope.graph) continue;
    erase_if(scope.graph->initializers, [&](const auto& tensor) { return !read.contains(tensor.name); });
    erase_if(scope.graph->sparse_initializers, [&](const auto& tensor) { return !read.contains(tensor.values.name); });
  }
}
void drop_uncalled_functions(wire::ModelProto& model) {
  std::unordered_set<std::string_view> called;
  for (const Scope& scope : scopes_of(model)) {
    for (const wire::NodeProto& node : scope.nodes()) called.insert(node.op_type);
  }
  erase_if(model.functions, [&](const wire::FunctionProto& function) { return !called.contains(function.name); });
}
void drop_unused_imports(wire::ModelProto& model) {
  std::unordered_set<std::string_view> used = {"", "ai.onnx"};
  for (const Scope& scope : scopes_of(model)) {
    for (const wire::NodeProto& node : scope.nodes()) used.insert(node.domain);
  }
  erase_if(model.opset_imports, [&](const wire::OperatorSetId& import) { return !used.contains(import.domain); });
}

constexpr std::array kDrops = {
    drop_descriptions, drop_origin,         drop_declared_types,      drop_types_of_outputs,   drop_names_of_nodes,
    drop_training,     drop_unknown_fields, drop_unread_initializers, drop_uncalled_functions, drop_unused_imports};

class Texts : public Step {
 public:
  const char* name() const override { return "descriptions"; }
  size_t count(wire::ModelProto&) const override { return kDrops.size(); }
  bool apply(Candidate& candidate, size_t first, size_t last, size_t) const override {
    for (size_t i = first; i < last; ++i) kDrops[i](candidate.model);
    return true;
  }
};

// Values other than inputs and outputs of the model get short names.
class ShortNames : public Step {
 public:
  const char* name() const override { return "names"; }
  size_t count(wire::ModelProto&) const override { return 1; }
  bool apply(Candidate& candidate, size_t, size_t, size_t) const override {
    const Names names(candidate.model);
    std::vector<std::string_view> others(names.definitions().size());
    std::unordered_set<std::string_view> kept = names_outside(candidate.model);
    size_t number = 0;
    for (size_t i = 0; i < others.size(); ++i) {
      const Definition& definition = names.definitions()[i];
      const bool stays = !names.scopes()[definition.scope].graph || kept.contains(definition.name);
      if (!stays) others[i] = next_name(number, kept, candidate.arena);
    }
    names.for_each_use([&](size_t scope, std::string_view& name) {
      const Definition* definition = names.find(scope, name);
      if (definition && !others[names.index_of(*definition)].empty()) name = others[names.index_of(*definition)];
    });
    rename_definitions(names, others);
    return true;
  }

 private:
  static std::unordered_set<std::string_view> names_outside(const wire::ModelProto& model) {
    std::unordered_set<std::string_view> names;
    if (!model.graph) return names;
    for (const wire::ValueInfoProto& input : model.graph->inputs) names.insert(input.name);
    for (const wire::ValueInfoProto& output : model.graph->outputs) names.insert(output.name);
    return names;
  }
  static std::string_view next_name(size_t& number, const std::unordered_set<std::string_view>& kept, Arena& arena) {
    for (;;) {
      const std::string name = fmt::format("v{}", ++number);
      if (!kept.contains(name)) return arena.copy(name);
    }
  }
  static void rename_definitions(const Names& names, const std::vector<std::string_view>& others) {
    for (size_t s = 0; s < names.scopes().size(); ++s) {
      const Scope& scope = names.scopes()[s];
      const auto rename = [&](std::string_view& name) {
        const Definition* definition = name.empty() ? nullptr : names.find(s, name);
        if (!definition || definition->scope != s) return;
        const std::string_view other = others[names.index_of(*definition)];
        if (!other.empty()) name = other;
      };
      for (wire::NodeProto& node : scope.nodes()) {
        for (std::string_view& output : node.outputs) rename(output);
      }
      if (!scope.graph) continue;
      for (wire::ValueInfoProto& input : scope.graph->inputs) rename(input.name);
      for (wire::ValueInfoProto& value : scope.graph->value_infos) rename(value.name);
      for (wire::TensorProto& tensor : scope.graph->initializers) rename(tensor.name);
      for (wire::SparseTensorProto& tensor : scope.graph->sparse_initializers) rename(tensor.values.name);
    }
  }
};

}  // namespace

void add_text_steps(Steps& steps) {
  steps.push_back(std::make_unique<Texts>());
  steps.push_back(std::make_unique<ShortNames>());
}

}  // namespace treadle::reduce
