#include "model/export.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "model/tensor_writer.h"
#include "model/types.h"
#include "op/loop_view.h"
#include "op/op_def.h"
#include "wire/serialize.h"

namespace treadle::model {

namespace {

constexpr int64_t kFirstIrVersionWithPlainInitializers = 4;  // before this version, each initialiser was an input as
                                                             // well

class Exporter {
 public:
  explicit Exporter(const ir::Graph& graph) : graph_(graph) {}

  Result<std::string> run() {
    wire::ModelProto model;
    const ir::Metadata& metadata = graph_.metadata;
    model.ir_version = std::max(metadata.ir_version, kFirstIrVersionWithPlainInitializers);
    model.producer_name = metadata.producer_name;
    model.producer_version = metadata.producer_version;
    model.domain = metadata.domain;
    model.doc_string = metadata.description;
    model.model_version = metadata.model_version;
    for (const auto& [key, value] : metadata.properties) {
      wire::StringStringEntry& entry = model.metadata_props.add(arena_);
      entry.key = key;
      entry.value = value;
    }
    TREADLE_TRY(write_opsets(model));
    const ir::Region& top = graph_.top();
    for (const ir::Value* input : top.inputs) name_of(input);
    for (const ir::Value* output : top.outputs) name_of(output);
    model.graph = arena_.make<wire::GraphProto>(write(top));
    model.graph->name = metadata.graph_name;
    model.graph->doc_string = metadata.graph_description;
    for (size_t i = 0; i < graph_.input_defaults.size(); ++i) {
      const Tensor& value = graph_.input_defaults[i];
      if (value.defined()) model.graph->initializers.add(arena_, write_tensor(value, name_of(top.inputs[i]), arena_));
    }
    for (const ir::Value* constant : constants_) {
      model.graph->initializers.add(arena_, write_tensor(constant->constant, name_of(constant), arena_));
    }
    return wire::serialize(model);
  }

 private:
  // Finds for each domain an operator set in which every node has the version with which it was imported.
  Status write_opsets(wire::ModelProto& model) {
    std::map<std::string_view, std::vector<const ir::Node*>> nodes;
    ir::for_each_node(graph_.top(), [&](const ir::Node& node) { nodes[node.op->domain].push_back(&node); });
    for (const auto& [domain, version] : graph_.metadata.opset_imports) {
      const std::string_view canonical = domain == "ai.onnx" ? std::string_view() : std::string_view(domain);
      if (!nodes.contains(canonical)) add_opset(model, domain, version);
    }
    for (const auto& [domain, of_domain] : nodes) {
      const auto fits = [&, &members = of_domain](int64_t opset) {
        return std::all_of(members.begin(), members.end(),
                           [&](const ir::Node* node) { return node->op->version_for(opset) == node->version; });
      };
      int64_t opset = 0;
      for (const auto& [imported, version] : graph_.metadata.opset_imports) {
        if ((imported == domain || (domain.empty() && imported == "ai.onnx")) && fits(version)) opset = version;
      }
      for (const ir::Node* node : of_domain) {
        if (opset == 0 && fits(node->version->since)) opset = node->version->since;
      }
      if (opset == 0) {
        return error(
            Code::kNotImplemented,
            "functions of the model brought operators of several versions of {} together, which one file cannot "
            "say without them",
            domain.empty() ? "ai.onnx" : domain);
      }
      add_opset(model, domain, opset);
    }
    return {};
  }

  void add_opset(wire::ModelProto& model, std::string_view domain, int64_t version) {
    wire::OperatorSetId& opset = model.opset_imports.add(arena_);
    opset.domain = domain;
    opset.version = version;
  }

  // A unique name for the value: its own, with a number if another value has the same.
  std::string_view name_of(const ir::Value* value) {
    if (!value) return {};
    const auto [it, fresh] = names_.emplace(value, std::string_view());
    if (!fresh) return it->second;
    std::string name(value->name);
    for (int number = 1; name.empty() || !taken_.insert(name).second; ++number) {
      name = fmt::format("{}_{}", std::string_view(value->name), number);
    }
    if (value->is_constant()) constants_.push_back(value);
    return it->second = arena_.copy(name);
  }

  wire::ValueInfoProto info_of(std::string_view name, const Type& type) {
    wire::ValueInfoProto info;
    info.name = name;
    if (type.is_known()) info.type = write_type(type, arena_);
    return info;
  }

  // onnx's inference gives the condition of a Loop's body the sizes of cond, which may differ from the ones here.
  static Type type_of_input(const ir::Region& region, const ir::Value& input) {
    const ir::Node* node = region.parent_node;
    if (!node || node->op->control != Control::kLoop) return input.type;
    const LoopView loop(*node);
    const bool is_condition = &input == loop.condition_before() && loop.condition();
    return is_condition && loop.condition()->type.rank() != 0 ? Type::tensor(ElementType::kBool) : input.type;
  }

  wire::GraphProto write(const ir::Region& region) {
    wire::GraphProto proto;
    proto.name = region.name;
    const bool is_top = region.parent_node == nullptr;
    std::unordered_set<const ir::Value*> own;  // values that a body may return
    for (const ir::Value* input : region.inputs) {
      proto.inputs.add(arena_, info_of(name_of(input), type_of_input(region, *input)));
      own.insert(input);
    }
    for (const auto& node : region.nodes) {
      proto.nodes.add(arena_, write(*node, region));
      own.insert(node->outputs.begin(), node->outputs.end());
    }
    for (const ir::Value* output : region.outputs) {
      std::string_view name = name_of(output);
      if (!is_top && own.erase(output) == 0) name = add_identity(name, proto);
      proto.outputs.add(arena_, info_of(name, output->type));
    }
    return proto;
  }

  // A value from outside of a body, or one that leaves the body twice, is copied by an Identity so that it has a name
  // of its own.
  std::string_view add_identity(std::string_view from, wire::GraphProto& proto) {
    std::string name;
    for (int number = 1; name.empty() || !taken_.insert(name).second; ++number) {
      name = fmt::format("{}_out_{}", from, number);
    }
    wire::NodeProto& node = proto.nodes.add(arena_);
    node.op_type = "Identity";
    node.inputs.add(arena_, from);
    return node.outputs.add(arena_, arena_.copy(name));
  }

  wire::NodeProto write(const ir::Node& node, const ir::Region& region) {
    wire::NodeProto proto;
    proto.op_type = node.op->name;
    proto.domain = node.op->domain;
    proto.name = own_part(node.name, region);
    for (const ir::Value* input : node.inputs) proto.inputs.add(arena_, name_of(input));
    for (const ir::Value* output : node.outputs) proto.outputs.add(arena_, name_of(output));
    for (const ir::Attribute& attribute : node.attributes.all()) proto.attributes.add(arena_, write(attribute));
    for (const auto& body : node.regions) {
      wire::AttributeProto& attribute = proto.attributes.add(arena_);
      attribute.name = body->attribute;
      attribute.type = wire::AttributeProto::kGraph;
      attribute.g = arena_.make<wire::GraphProto>(write(*body));
    }
    return proto;
  }

  // The last part of a path: "Add_7" for "/encoder/Loop_3:body/Add_7" in the body of "/encoder/Loop_3".
  static std::string_view own_part(std::string_view path, const ir::Region& region) {
    if (region.parent_node) {
      const std::string around = fmt::format("{}:{}", std::string_view(region.parent_node->name), region.attribute);
      if (path.starts_with(around)) path.remove_prefix(around.size());
    }
    if (path.starts_with('/')) path.remove_prefix(1);
    return path;
  }

  wire::AttributeProto write(const ir::Attribute& attribute) {
    wire::AttributeProto proto;
    proto.name = attribute.name;
    proto.type = static_cast<int32_t>(attribute.kind);
    switch (attribute.kind) {
      case ir::AttributeKind::kFloat:
        proto.f = attribute.as_float();
        break;
      case ir::AttributeKind::kInt:
        proto.i = attribute.as_int();
        break;
      case ir::AttributeKind::kString:
        proto.s = attribute.as_string();
        break;
      case ir::AttributeKind::kFloats:
        proto.floats.append(arena_, attribute.as_floats().begin(), attribute.as_floats().end());
        break;
      case ir::AttributeKind::kInts:
        proto.ints.append(arena_, attribute.as_ints().begin(), attribute.as_ints().end());
        break;
      case ir::AttributeKind::kStrings:
        for (const std::string& text : attribute.as_strings()) proto.strings.add(arena_, text);
        break;
      case ir::AttributeKind::kTensor:
      case ir::AttributeKind::kSparseTensor:  // stored dense
        proto.type = wire::AttributeProto::kTensor;
        proto.t = arena_.make<wire::TensorProto>(write_tensor(attribute.as_tensor(), {}, arena_));
        break;
      case ir::AttributeKind::kTensors:
      case ir::AttributeKind::kSparseTensors:
        proto.type = wire::AttributeProto::kTensors;
        for (const Tensor& tensor : attribute.as_tensors()) proto.tensors.add(arena_, write_tensor(tensor, {}, arena_));
        break;
      case ir::AttributeKind::kTypeProto:
        proto.tp = arena_.make<wire::TypeProto>(write_type(attribute.as_type(), arena_));
        break;
      case ir::AttributeKind::kTypeProtos:
        for (const Type& type : std::get<std::vector<Type>>(attribute.value)) {
          proto.type_protos.add(arena_, write_type(type, arena_));
        }
        break;
      case ir::AttributeKind::kUndefined:
      case ir::AttributeKind::kGraph:  // bodies are regions
      case ir::AttributeKind::kGraphs:
        break;
    }
    return proto;
  }

  const ir::Graph& graph_;
  Arena arena_;
  std::unordered_map<const ir::Value*, std::string_view> names_;
  std::unordered_set<std::string> taken_;
  std::vector<const ir::Value*> constants_;  // in order of first use
};

}  // namespace

Result<std::string> export_model(const ir::Graph& graph) {
  return Exporter(graph).run();
}

}  // namespace treadle::model
