// Inlines calls of a model's functions.

#include <algorithm>
#include <unordered_set>

#include "base/stack.h"
#include "model/importer.h"

namespace treadle::model {

Status Importer::count_inlined(size_t cost) {
  inlined_ += std::min(cost, SIZE_MAX - inlined_);
  if (inlined_ <= options_.max_inlined_nodes) return {};
  return error(Code::kLimit, "inlining the model's functions makes more than {} nodes", options_.max_inlined_nodes);
}

Status Importer::call_function(const wire::NodeProto& call, const Function& function, std::string_view path,
                               ImportTarget& target) {
  const wire::FunctionProto& proto = *function.proto;
  // A call that would exceed a limit is refused before it is inlined.
  if (function.nodes > options_.max_inlined_nodes) return count_inlined(function.nodes);
  if (++depth_ > kMaxImportDepth) {
    return error(Code::kLimit, "bodies and calls are nested more than {} deep", kMaxImportDepth);
  }
  TREADLE_TRY(check_stack(static_cast<size_t>(depth_)));
  TREADLE_TRY(count_inlined(1));
  ++open_calls_;
  if (call.inputs.size() > proto.inputs.size() || call.outputs.size() > proto.outputs.size()) {
    return error(Code::kInvalidModel, "function {} has {} inputs and {} outputs, the call {} and {}",
                 function_name(proto), proto.inputs.size(), proto.outputs.size(), call.inputs.size(),
                 call.outputs.size());
  }
  if (options_.as_onnx && call.outputs.size() < proto.outputs.size()) {
    return error(Code::kInvalidModel, "function {} has {} outputs, the call takes {}", function_name(proto),
                 proto.outputs.size(), call.outputs.size());
  }
  Scope scope(nullptr);
  std::vector<ir::Value*> arguments;
  for (size_t i = 0; i < proto.inputs.size(); ++i) {
    TREADLE_ASSIGN(ir::Value * value, resolve(i < call.inputs.size() ? call.inputs[i] : std::string_view(), target));
    arguments.push_back(value);
    if (!scope.define(proto.inputs[i], value)) {
      return error(Code::kInvalidModel, "function {} has two inputs \"{}\"", function_name(proto), proto.inputs[i]);
    }
  }
  Environment environment{&function.opsets, nullptr, &proto};
  TREADLE_ASSIGN(const Bindings parameters, bind_attributes(call, proto, environment, target));
  environment.parameters = &parameters;
  NodePaths paths(path);
  const DeclaredTypes no_types;  // types that a function declares would have to hold for all calls
  ImportTarget inside{target.region, scope, environment, paths, no_types};
  TREADLE_TRY(import_nodes(proto.nodes, inside));
  TREADLE_TRY(bind_outputs(call, proto, scope, arguments, path, target));
  --open_calls_;
  --depth_;
  return {};
}

Result<Bindings> Importer::bind_attributes(const wire::NodeProto& call, const wire::FunctionProto& function,
                                           const Environment& inner, const ImportTarget& target) {
  Bindings bindings;
  for (const wire::AttributeProto& attribute : call.attributes) {
    if (is_private(attribute.name)) continue;
    bool declared = false;
    for (const std::string_view name : function.attributes) declared |= name == attribute.name;
    for (const wire::AttributeProto& parameter : function.attribute_protos)
      declared |= parameter.name == attribute.name;
    if (!declared) continue;  // no node of the function can refer to it
    TREADLE_ASSIGN(const Binding binding, resolve_attribute(attribute, target));
    if (binding.proto && !bindings.emplace(attribute.name, binding).second) {
      return error(Code::kInvalidModel, "attribute \"{}\" is given twice", attribute.name);
    }
  }
  for (const wire::AttributeProto& parameter : function.attribute_protos) {
    bindings.emplace(parameter.name, Binding{&parameter, &inner, nullptr});
  }
  return bindings;
}

// The function's outputs take the names that the caller gives them. A value has only one name, so an output that is
// also an argument or another output is copied by an Identity.
Status Importer::bind_outputs(const wire::NodeProto& call, const wire::FunctionProto& function, const Scope& inner,
                              const std::vector<ir::Value*>& arguments, std::string_view path, ImportTarget& target) {
  std::unordered_set<const ir::Value*> taken(arguments.begin(), arguments.end());
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i].empty()) continue;
    ir::Value* const* found = inner.find(function.outputs[i]);
    if (!found) {
      return error(Code::kInvalidModel, "nothing in function {} defines its output \"{}\"", function_name(function),
                   function.outputs[i]);
    }
    ir::Value* value = *found;
    if (value && !taken.insert(value).second) {
      TREADLE_ASSIGN(value, insert_identity(value, fmt::format("{}/{}", path, function.outputs[i]), target));
    }
    if (value) {
      value->name = value_name(call.outputs[i], target);
      if (!value->type.is_known()) {
        TREADLE_ASSIGN(value->type, declared_type(call.outputs[i], target));
      }
    }
    TREADLE_TRY(define(call.outputs[i], value, target));
  }
  return {};
}

Result<ir::Value*> Importer::insert_identity(ir::Value* value, std::string_view path, ImportTarget& target) {
  const OpDef* identity = find_op("", "Identity");
  if (!identity) return error(Code::kNotImplemented, "operator Identity is not implemented");
  ir::Node* node = graph_->new_node(target.region, identity, &identity->newest(), path);
  graph_->add_input(node, value);
  return graph_->add_output(node, path, value->type);
}

}  // namespace treadle::model
