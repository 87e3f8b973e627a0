#include "reduce/tidy.h"

#include <algorithm>
#include <unordered_map>

#include "reduce/lists.h"
#include "reduce/tensors.h"

namespace treadle::reduce {

namespace {

using NameSet = std::unordered_set<std::string_view>;

wire::ValueInfoProto value_of(std::string_view name, const wire::TypeProto* type) {
  wire::ValueInfoProto value;
  value.name = name;
  if (type) value.type = *type;
  return value;
}

// Marks what the outputs of a model are made from.
class Readers {
 public:
  Readers(const Names& names, const Facts& facts)
      : names_(names), facts_(facts), read_(names.definitions().size(), false) {
    for (size_t s = 0; s < names.scopes().size(); ++s) {
      const Scope& scope = names.scopes()[s];
      scope.is_body() ? bodies_[scope.owner].push_back(s) : read_outputs(s);
    }
    while (!open_.empty()) {
      const auto [scope, node] = open_.back();
      open_.pop_back();
      for (const std::string_view input : node->inputs) read(scope, input);
      if (const auto bodies = bodies_.find(node); bodies != bodies_.end()) {
        for (const size_t body : bodies->second) read_outputs(body);
      }
    }
  }

  bool needs(const wire::NodeProto& node) const { return needed_.contains(&node); }
  bool reads(const Definition& definition) const { return read_[names_.index_of(definition)]; }

 private:
  void read_outputs(size_t scope) {
    names_.for_each_output(scope, [&](std::string_view name) { read(scope, name); });
    for (const wire::NodeProto& node : names_.scopes()[scope].nodes()) {
      if (always_stays(node)) need(scope, node);
    }
  }
  bool always_stays(const wire::NodeProto& node) const {
    const auto named = std::find_if(node.outputs.begin(), node.outputs.end(), [](auto name) { return !name.empty(); });
    return named == node.outputs.end() || facts_.dead_nodes.contains(*named);
  }
  void need(size_t scope, const wire::NodeProto& node) {
    if (needed_.insert(&node).second) open_.emplace_back(scope, &node);
  }
  void read(size_t scope, std::string_view name) {
    const Definition* definition = name.empty() ? nullptr : names_.find(scope, name);
    if (!definition) return;
    read_[names_.index_of(*definition)] = true;
    if (definition->kind != Definition::kNode) return;
    need(definition->scope, names_.scopes()[definition->scope].nodes()[definition->node]);
  }

  const Names& names_;
  const Facts& facts_;
  std::vector<bool> read_;  // by the index of a definition
  std::unordered_map<const wire::NodeProto*, std::vector<size_t>> bodies_;
  std::unordered_set<const wire::NodeProto*> needed_;
  std::vector<std::pair<size_t, const wire::NodeProto*>> open_;
};

// A value takes the place of a name that nothing defines, in a scope of its own or for the whole model.
class Mender {
 public:
  Mender(Candidate& candidate, Mend by) : candidate_(candidate), by_(by) {}

  // In `scope` itself: an output of a body may be no value from around it.
  void define_in(const Scope& scope, std::string_view name) {
    const wire::TypeProto* type = candidate_.type_of(name);
    if (type && type->sequence) {
      insert_at(scope.nodes(), 0, std::vector{empty_sequence(*type, name)}, candidate_.arena);
    } else if (scope.graph) {
      scope.graph->initializers.add(candidate_.arena, zeros_of(type, name, candidate_.arena));
    } else {
      const wire::TensorProto zeros = zeros_of(type, name, candidate_.arena);
      insert_at(scope.nodes(), 0, std::vector{constant_of(zeros, candidate_.arena)}, candidate_.arena);
    }
  }
  void define(const Scope& outermost, std::string_view name) {
    constexpr int64_t kNeedsNoInputs = 4;  // IR version from which an initializer need not be an input
    const wire::TypeProto* type = candidate_.type_of(name);
    if (by_ == Mend::kZeros || !outermost.graph || !type) define_in(outermost, name);
    const bool with_default = candidate_.model.ir_version < kNeedsNoInputs;
    if (!outermost.graph || !type || (by_ == Mend::kZeros && (!with_default || type->sequence))) return;
    outermost.graph->inputs.add(candidate_.arena, value_of(name, type));
  }

 private:
  wire::NodeProto empty_sequence(const wire::TypeProto& type, std::string_view name) {
    wire::NodeProto node;
    node.op_type = "SequenceEmpty";
    node.outputs.add(candidate_.arena, name);
    const wire::TypeProto* element = type.sequence->elem_type;
    if (element && element->tensor) {
      wire::AttributeProto& dtype = node.attributes.add(candidate_.arena);
      dtype.name = "dtype";
      dtype.type = wire::AttributeProto::kInt;
      dtype.i = element->tensor->elem_type.get();
    }
    return node;
  }

  Candidate& candidate_;
  Mend by_;
};

// Drops outputs of the model that have lost their definition.
bool mend_outputs(Candidate& candidate) {
  wire::GraphProto& graph = *candidate.model.graph;
  if (graph.outputs.empty()) return true;
  {
    const Names names(candidate.model);
    erase_if(graph.outputs, [&](const wire::ValueInfoProto& output) {
      return !names.find(0, output.name) && !candidate.facts.undefined.contains(output.name);
    });
  }
  if (graph.outputs.empty()) show_unread(candidate, {});
  return !graph.outputs.empty();
}

size_t outermost(const std::vector<Scope>& scopes, size_t scope) {
  while (scopes[scope].is_body()) scope = scopes[scope].outer;
  return scope;
}

}  // namespace

bool mend(Candidate& candidate, Mend by) {
  if (!candidate.model.graph || !mend_outputs(candidate)) return false;
  Mender mender(candidate, by);
  const Names names(candidate.model);
  const std::vector<Scope>& scopes = names.scopes();
  std::vector<std::pair<size_t, std::string_view>> missing;
  std::vector<NameSet> mended(scopes.size());
  const auto is_missing = [&](size_t scope, std::string_view name) {
    if (names.find(scope, name) || candidate.facts.undefined.contains(name)) return false;
    for (size_t s = scope; s != kNoScope; s = scopes[s].outer) {
      if (mended[s].contains(name)) return false;
    }
    return true;
  };
  // Definitions are added behind the walk: they may move nodes that scopes point to, inner ones last.
  for (size_t s = 0; s < scopes.size(); ++s) {
    names.for_each_output(s, [&](std::string_view name) {
      if (is_missing(s, name) && mended[s].insert(name).second) missing.emplace_back(s, name);
    });
  }
  const size_t in_bodies = missing.size();
  names.for_each_use([&](size_t s, std::string_view name) {
    const size_t where = outermost(scopes, s);
    if (is_missing(s, name) && mended[where].insert(name).second) missing.emplace_back(where, name);
  });
  for (size_t i = 0; i < missing.size(); ++i) {
    const Scope& scope = scopes[missing[i].first];
    i < in_bodies ? mender.define_in(scope, missing[i].second) : mender.define(scope, missing[i].second);
  }
  return true;
}

void prune(Candidate& candidate) {
  const Names names(candidate.model);
  const Readers readers(names, candidate.facts);
  // Inner scopes first: erasing nodes moves the nodes of their scope.
  for (size_t s = names.scopes().size(); s-- > 0;) {
    const Scope& scope = names.scopes()[s];
    NameSet gone;
    erase_if(scope.nodes(), [&](const wire::NodeProto& node) {
      if (readers.needs(node)) return false;
      gone.insert(node.outputs.begin(), node.outputs.end());
      return true;
    });
    if (!scope.graph) continue;
    const auto is_idle = [&](std::string_view name) {
      const Definition* definition = names.find(s, name);
      return definition && definition->scope == s && definition->kind == Definition::kInitializer &&
             !readers.reads(*definition) && !candidate.facts.idle_initializers.contains(name);
    };
    erase_if(scope.graph->initializers, [&](const auto& tensor) { return is_idle(tensor.name); });
    erase_if(scope.graph->sparse_initializers, [&](const auto& tensor) { return is_idle(tensor.values.name); });
    erase_if(scope.graph->value_infos, [&](const auto& value) { return gone.contains(value.name); });
  }
}

void show_unread(Candidate& candidate, const NameSet& but) {
  wire::GraphProto& graph = *candidate.model.graph;
  const NameSet unread = unread_results(candidate.model);
  for (const wire::NodeProto& node : graph.nodes) {
    if (is_of_onnx(node, "Constant")) continue;
    for (const std::string_view name : node.outputs) {
      if (!unread.contains(name) || but.contains(name)) continue;
      graph.outputs.add(candidate.arena, value_of(name, candidate.type_of(name)));
    }
  }
}

NameSet unread_results(wire::ModelProto& model) {
  const Names names(model);
  NameSet read;
  names.for_each_use([&](size_t, std::string_view name) { read.insert(name); });
  NameSet unread;
  for (const wire::NodeProto& node : model.graph->nodes) {
    for (const std::string_view name : node.outputs) {
      if (!name.empty() && !read.contains(name)) unread.insert(name);
    }
  }
  return unread;
}

void note_unread(wire::ModelProto& model, Facts& facts) {
  const Names names(model);
  names.for_each_use([&](size_t scope, std::string_view name) {
    if (!names.find(scope, name)) facts.undefined.insert(name);
  });
  const Facts nothing;
  const Readers readers(names, nothing);
  for (const Definition& definition : names.definitions()) {
    if (definition.kind == Definition::kInitializer && !readers.reads(definition)) {
      facts.idle_initializers.insert(definition.name);
    }
  }
  for (const Scope& scope : names.scopes()) {
    for (const wire::NodeProto& node : scope.nodes()) {
      if (readers.needs(node)) continue;
      for (const std::string_view name : node.outputs) {
        if (!name.empty()) {
          facts.dead_nodes.insert(name);
          break;
        }
      }
    }
  }
}

void Replacements::add(const Definition& definition, std::string_view by) {
  by_.resize(names_.definitions().size());
  by_[names_.index_of(definition)] = by;
}

std::string_view Replacements::final_name(size_t scope, std::string_view name) {
  std::vector<size_t> passed;  // definitions on the way, which all end in the same name
  while (passed.size() <= by_.size()) {
    const Definition* definition = names_.find(scope, name);
    const size_t index = definition ? names_.index_of(*definition) : 0;
    if (!definition || by_[index].empty()) break;
    if (!final_[index].empty()) {
      name = final_[index];
      break;
    }
    passed.push_back(index);
    scope = definition->scope;
    name = by_[index];
  }
  for (const size_t index : passed) final_[index] = name;
  return name;
}

void Replacements::apply() {
  by_.resize(names_.definitions().size());
  final_.resize(names_.definitions().size());
  for (size_t s = 0; s < names_.scopes().size(); ++s) {
    for (wire::NodeProto& node : names_.scopes()[s].nodes()) {
      for (std::string_view& name : node.inputs) {
        if (!name.empty()) name = final_name(s, name);
      }
    }
  }
  // Inner scopes first: an Identity moves the nodes of its scope.
  for (size_t s = names_.scopes().size(); s-- > 0;) {
    const Scope& scope = names_.scopes()[s];
    if (scope.is_body()) {
      rename_outputs_of_body(s);
    } else if (scope.graph) {
      rename_outputs_of_model();
    } else {
      for (std::string_view& output : scope.function->outputs) output = final_name(s, output);
    }
  }
}

void Replacements::rename_outputs_of_model() {
  wire::GraphProto& graph = *candidate_.model.graph;
  NameSet shown;
  for (const wire::ValueInfoProto& output : graph.outputs) shown.insert(output.name);
  erase_if(graph.outputs, [&](wire::ValueInfoProto& output) {
    const std::string_view by = final_name(0, output.name);
    if (by == output.name) return false;
    const Definition* definition = names_.find(0, by);
    if (!definition || definition->kind != Definition::kNode || !shown.insert(by).second) return true;
    output = value_of(by, candidate_.type_of(by));
    return false;
  });
}

void Replacements::rename_outputs_of_body(size_t s) {
  const Scope& scope = names_.scopes()[s];
  NameSet made;
  for (wire::ValueInfoProto& output : scope.graph->outputs) {
    const std::string_view by = final_name(s, output.name);
    if (by == output.name) continue;
    const Definition* definition = names_.find(s, by);
    if (definition && definition->scope == s) {
      output = value_of(by, candidate_.type_of(by));
    } else if (made.insert(output.name).second) {
      wire::NodeProto& identity = scope.graph->nodes.add(candidate_.arena);
      identity.op_type = "Identity";
      identity.inputs.add(candidate_.arena, by);
      identity.outputs.add(candidate_.arena, output.name);
    }
  }
}

}  // namespace treadle::reduce
