#include "model/annotate.h"

#include "model/importer.h"
#include "model/splice.h"
#include "model/types.h"
#include "wire/parse.h"

namespace treadle::model {

namespace {

using TypesByName = std::unordered_map<std::string_view, const Type*>;

TypesByName types_of(const ir::Region& region) {
  TypesByName types;
  for (const ir::Value* input : region.inputs) types.emplace(input->name, &input->type);
  for (const auto& node : region.nodes) {
    for (const ir::Value* output : node->outputs) {
      if (output) types.emplace(output->name, &output->type);
    }
  }
  // Constants stand in no list; `Constant` nodes of the file are found at their users.
  const auto add_constant = [&](const ir::Value* value) {
    if (value && value->is_constant()) types.emplace(value->name, &value->type);
  };
  ir::for_each_node(region, [&](const ir::Node& node) {
    for (const ir::Value* input : node.inputs) add_constant(input);
  });
  for (const ir::Value* output : region.outputs) add_constant(output);
  return types;
}

// Of a `Constant`, as its attribute says. Those that somebody uses are found at their users, the others only here.
Type type_of_constant(const wire::NodeProto& node) {
  const auto of_dims = [](int32_t type, const wire::List<int64_t>& dims) {
    return Type::tensor(element_type_from_number(type), Shape(dims.begin(), dims.end()));
  };
  const auto list = [](ElementType type, size_t count) { return Type::tensor(type, {static_cast<int64_t>(count)}); };
  for (const wire::AttributeProto& a : node.attributes) {
    if (!a.ref_attr_name.empty()) continue;
    if (a.name == "value" && a.t) return of_dims(a.t->data_type, a.t->dims);
    if (a.name == "sparse_value" && a.sparse_tensor) {
      return of_dims(a.sparse_tensor->values.data_type, a.sparse_tensor->dims);
    }
    if (a.name == "value_float") return Type::tensor(ElementType::kFloat, Shape{});
    if (a.name == "value_int") return Type::tensor(ElementType::kInt64, Shape{});
    if (a.name == "value_string") return Type::tensor(ElementType::kString, Shape{});
    if (a.name == "value_floats") return list(ElementType::kFloat, a.floats.size());
    if (a.name == "value_ints") return list(ElementType::kInt64, a.ints.size());
    if (a.name == "value_strings") return list(ElementType::kString, a.strings.size());
  }
  return {};
}

class Annotator {
 public:
  explicit Annotator(Arena& arena) : arena_(arena) {}

  void annotate(wire::GraphProto& proto, const ir::Region& region, const std::string& path) {
    const TypesByName types = types_of(region);
    annotate_bodies(proto, region, path);
    std::unordered_map<std::string_view, wire::ValueInfoProto*> outputs;
    for (size_t i = 0; i < proto.outputs.size() && i < region.outputs.size(); ++i) {
      outputs.emplace(proto.outputs[i].name, &proto.outputs[i]);
      write_output(region.outputs[i]->type, proto.outputs[i]);
    }
    std::unordered_map<std::string_view, size_t> described;
    for (size_t i = 0; i < proto.value_infos.size(); ++i) described.emplace(proto.value_infos[i].name, i);
    for (const wire::NodeProto& node : proto.nodes) {
      for (const std::string_view name : node.outputs) {
        const auto found = types.find(name);
        const bool constant = node.op_type == "Constant" && canonical_domain(node.domain).empty();
        const Type type = found != types.end() ? *found->second : constant ? type_of_constant(node) : Type();
        if (name.empty() || !type.is_known() || outputs.contains(name)) continue;
        const auto [it, fresh] = described.emplace(name, proto.value_infos.size());
        if (fresh) proto.value_infos.add(arena_).name = name;
        write(type, proto.value_infos[it->second]);
      }
    }
  }

 private:
  void annotate_bodies(wire::GraphProto& proto, const ir::Region& region, const std::string& path) {
    std::unordered_map<std::string_view, const ir::Node*> by_path;
    for (const auto& node : region.nodes) by_path.emplace(node->name, node.get());
    NodePaths paths(path);
    for (size_t i = 0; i < proto.nodes.size(); ++i) {
      const std::string node_path = paths.make(proto.nodes[i], i);
      const auto node = by_path.find(node_path);
      if (node == by_path.end()) continue;
      for (wire::AttributeProto& attribute : proto.nodes[i].attributes) {
        const ir::Region* body = attribute.g ? node->second->region(attribute.name) : nullptr;
        if (body) annotate(*attribute.g, *body, fmt::format("{}:{}", node_path, attribute.name));
      }
    }
  }

  // What leaves a body may be a value with a declaration of its own elsewhere; here this one's names stay.
  void write_output(const Type& type, wire::ValueInfoProto& info) {
    auto declared = info.type ? read_type(*info.type) : Result<Type>(Type());
    auto merged = declared.ok() ? merge(*declared, type) : Result<Type>(type);
    write(merged.ok() ? *merged : type, info);
  }

  void write(const Type& type, wire::ValueInfoProto& info) {
    if (type.is_known()) info.type = write_type(type, arena_);
  }

  Arena& arena_;
};

}  // namespace

Result<std::string> annotate_types(const wire::MappedFile& file, const ir::Graph& graph) {
  TREADLE_ASSIGN(wire::Parsed<wire::ModelProto> model, wire::parse_model(file.bytes()));
  if (model->graph) Annotator(model.arena()).annotate(*model->graph, graph.top(), "");
  return splice_types(file.bytes(), *model);
}

}  // namespace treadle::model
