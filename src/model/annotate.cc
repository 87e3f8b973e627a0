#include "model/annotate.h"

#include "base/name_map.h"
#include "model/importer.h"
#include "model/splice.h"
#include "model/types.h"
#include "wire/parse.h"

namespace treadle::model {

namespace {

using TypesByName = NameMap<const Type*>;

TypesByName types_of(const ir::Region& region) {
  TypesByName types;
  types.reserve(region.inputs.size() + region.nodes.size());
  for (const ir::Value* input : region.inputs) types.emplace(input->name, &input->type);
  for (const auto& node : region.nodes) {
    for (const ir::Value* output : node->outputs) {
      if (output) types.emplace(output->name, &output->type);
    }
  }
  return types;
}

// The type of a `Constant` by its attribute: the graph has no node for it.
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
    NameMap<bool> outputs;
    for (size_t i = 0; i < proto.outputs.size() && i < region.outputs.size(); ++i) {
      outputs.emplace(proto.outputs[i].name, true);
      write_output(region.outputs[i]->type, proto.outputs[i]);
    }
    NameMap<size_t> described;
    described.reserve(proto.value_infos.size() + types.size());
    proto.value_infos.reserve(arena_, proto.value_infos.size() + types.size());
    for (size_t i = 0; i < proto.value_infos.size(); ++i) described.emplace(proto.value_infos[i].name, i);
    for (const wire::NodeProto& node : proto.nodes) {
      for (const std::string_view name : node.outputs) {
        if (name.empty() || outputs.contains(name)) continue;
        const Type* const* found = types.find(name);
        const bool constant = !found && node.op_type == "Constant" && canonical_domain(node.domain).empty();
        const Type of_constant = constant ? type_of_constant(node) : Type();
        const Type& type = found ? **found : of_constant;
        if (!type.is_known()) continue;
        const auto [index, fresh] = described.emplace(name, proto.value_infos.size());
        if (fresh) proto.value_infos.add(arena_).name = name;
        write(type, proto.value_infos[described.value(index)]);
      }
    }
  }

 private:
  void annotate_bodies(wire::GraphProto& proto, const ir::Region& region, const std::string& path) {
    NameMap<const ir::Node*> by_path;
    for (const auto& node : region.nodes) {
      if (!node->regions.empty()) by_path.emplace(node->name, node.get());
    }
    if (by_path.size() == 0) return;
    NodePaths paths(path);
    for (size_t i = 0; i < proto.nodes.size(); ++i) {
      const std::string node_path = paths.make(proto.nodes[i], i);
      const ir::Node* const* node = by_path.find(node_path);
      if (!node) continue;
      for (wire::AttributeProto& attribute : proto.nodes[i].attributes) {
        const ir::Region* body = attribute.g ? (*node)->region(attribute.name) : nullptr;
        if (body) annotate(*attribute.g, *body, fmt::format("{}:{}", node_path, attribute.name));
      }
    }
  }

  // A value that leaves a body may be declared elsewhere under other names of sizes; this declaration's names stay.
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

Result<wire::Pieces> annotate_types(wire::Parsed<wire::ModelProto>& model, std::string_view bytes,
                                    const ir::Graph& graph) {
  if (model->graph) Annotator(model.arena()).annotate(*model->graph, graph.top(), "");
  return splice_types(bytes, *model);
}

}  // namespace treadle::model
