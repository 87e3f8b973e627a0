#include "open/declared.h"

#include "base/name_map.h"
#include "model/importer.h"
#include "model/types.h"
#include "open/agreement.h"
#include "reduce/names.h"

namespace treadle::open {

namespace {

// Values of a graph by name, with symbols and with the old sizes.
struct Value {
  const ir::Value *now, *old;
};
NameMap<Value> values_of(const ir::Region& now, const ir::Region& old) {
  NameMap<Value> values;
  const auto add = [&](const ir::Value* a, const ir::Value* b) {
    if (a && b) values.emplace(a->name, {a, b});
  };
  for (size_t i = 0; i < now.inputs.size(); ++i) add(now.inputs[i], old.inputs[i]);
  for (size_t n = 0; n < now.nodes.size(); ++n) {
    for (size_t i = 0; i < now.nodes[n]->outputs.size(); ++i) add(now.nodes[n]->outputs[i], old.nodes[n]->outputs[i]);
  }
  return values;
}

Type without_sizes(Type type) {
  type.has_shape = false;
  type.shape.clear();
  if (type.child) type.child = std::make_shared<const Type>(without_sizes(*type.child));
  return type;
}

// Calls fn(wire::ValueInfoProto&, const Value&) for the declared values of a graph and of the bodies in it.
template <class Fn>
void for_each_declared(wire::GraphProto& proto, const ir::Region& now, const ir::Region& old, const std::string& path,
                       Fn&& fn) {
  const NameMap<Value> values = values_of(now, old);
  for (auto* list : {&proto.inputs, &proto.outputs, &proto.value_infos}) {
    for (wire::ValueInfoProto& info : *list) {
      if (const Value* value = values.find(info.name)) fn(info, *value);
    }
  }
  NameMap<size_t> nodes;
  for (size_t i = 0; i < now.nodes.size(); ++i) {
    if (!now.nodes[i]->regions.empty()) nodes.emplace(now.nodes[i]->name, i);
  }
  model::NodePaths paths(path);
  for (size_t i = 0; i < proto.nodes.size(); ++i) {
    const std::string node = paths.make(proto.nodes[i], i);
    const size_t* found = nodes.find(node);
    if (!found) continue;
    for (wire::AttributeProto& attribute : proto.nodes[i].attributes) {
      const ir::Region* body = attribute.g ? now.nodes[*found]->region(attribute.name) : nullptr;
      if (!body) continue;
      const ir::Region& body_old = *old.nodes[*found]->region(attribute.name);
      for_each_declared(*attribute.g, *body, body_old, fmt::format("{}:{}", node, attribute.name), fn);
    }
  }
}

// What is declared of a value that is computed from opened inputs. A number that inference does not confirm may depend
// on them, and is not known any more.
void declare(const Value& value, wire::TypeProto& proto, const Openings& openings, Arena& arena) {
  auto declared = model::read_type(proto);
  if (!declared.ok() || !declared->is_known()) return;
  Type type = *declared;
  if (!type.is_tensor()) {
    type = without_sizes(std::move(type));
  } else if (type.has_shape) {
    const Type& now = value.now->type;
    const bool comparable = now.is_tensor() && now.has_shape && now.shape.size() == type.shape.size();
    type.has_shape = comparable;
    for (size_t axis = 0; comparable && axis < type.shape.size(); ++axis) {
      if (openings.opens(now.shape[axis])) {
        type.shape[axis] = now.shape[axis];
      } else if (now.shape[axis].is_unknown() && type.shape[axis].is_known()) {
        type.shape[axis] = Dim::unknown();
      }
    }
    if (!comparable) type.shape.clear();
  }
  proto = model::write_type(type, arena);
}

// Calls fn(wire::ValueInfoProto&) for all that a graph declares, inputs of the model aside.
template <class Fn>
void for_each_info(const reduce::Scope& scope, Fn&& fn) {
  for (auto* list : {&scope.graph->inputs, &scope.graph->outputs, &scope.graph->value_infos}) {
    if (list == &scope.graph->inputs && !scope.is_body()) continue;
    for (wire::ValueInfoProto& info : *list) fn(info);
  }
}

void forget_sizes(wire::ValueInfoProto& info) {
  if (info.type && info.type->tensor) info.type->tensor->shape.reset();
}

}  // namespace

DeclaredSizes::DeclaredSizes(wire::ModelProto& model, Arena& arena) : model_(model), arena_(arena) {
  for (const reduce::Scope& scope : reduce::scopes_of(model)) {
    if (scope.function) {
      for (wire::ValueInfoProto& info : scope.function->value_infos) forget_sizes(info);
      continue;
    }
    for_each_info(scope, [&](wire::ValueInfoProto& info) {
      declared_.emplace(&info, info.type);
      forget_sizes(info);
    });
  }
}

void DeclaredSizes::restore(const Reading& now, const Reading& old, const Openings& openings) {
  for (const reduce::Scope& scope : reduce::scopes_of(model_)) {
    if (scope.function) continue;
    for_each_info(scope, [&](wire::ValueInfoProto& info) { info.type = declared_.at(&info); });
  }
  const std::unordered_set<const ir::Value*> opened = opened_values(now, openings);
  for_each_declared(*model_.graph, now.top(), old.top(), "", [&](wire::ValueInfoProto& info, const Value& value) {
    if (info.type && opened.contains(value.now)) declare(value, *info.type, openings, arena_);
  });
}

Status DeclaredSizes::check_symbols(const Reading& old, const Openings& openings) const {
  Status status;
  const SymbolSizes sizes = openings.sizes();
  for_each_declared(*model_.graph, old.top(), old.top(), "", [&](wire::ValueInfoProto& info, const Value& value) {
    const auto kept = declared_.find(&info);
    const std::optional<wire::TypeProto>& type = kept == declared_.end() ? info.type : kept->second;
    if (!status.ok() || !type || !type->tensor || !type->tensor->shape || !value.old->type.has_shape) return;
    const Shape& shape = value.old->type.shape;
    for (size_t axis = 0; axis < std::min(shape.size(), type->tensor->shape->dims.size()); ++axis) {
      const wire::Dimension& dim = type->tensor->shape->dims[axis];
      const auto size = dim.value ? sizes.end() : sizes.find(dim.param);
      if (size == sizes.end() || same(shape[axis], size->second)) continue;
      status =
          error(Code::kInvalidArgument, "\"{}\" already names the size {} of axis {} of \"{}\", expected a new name",
                dim.param, shape[axis].to_string(), axis, info.name);
    }
  });
  return status;
}

}  // namespace treadle::open
