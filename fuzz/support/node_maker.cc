#include "fuzz/support/node_maker.h"

#include <fmt/format.h>

#include "model/packing.h"
#include "op/registry.h"
#include "wire/clone.h"

namespace treadle::fuzz {

using ir::AttributeKind;

namespace {

ElementTypeSet tensors_of(const Formal& formal, const OpVersion& version) {
  if (const TypeConstraint* constraint = version.constraint(formal.type)) return constraint->types.tensor;
  constexpr std::string_view kPrefix = "tensor(";
  const std::string_view type = formal.type;
  if (!type.starts_with(kPrefix) || !type.ends_with(')')) return {};
  const ElementType element = element_type_from_name(type.substr(kPrefix.size(), type.size() - kPrefix.size() - 1));
  return element == ElementType::kUndefined ? ElementTypeSet() : ElementTypeSet::of(element);
}

ElementType draw(Random& random, ElementTypeSet set) {
  const ElementTypeSet usual = set & ElementTypeSet::of(ElementType::kFloat, ElementType::kInt64, ElementType::kBool);
  if (usual.bits() && !random.one_in(3)) set = usual;
  std::vector<ElementType> types;
  for (int i = 1; i < kElementTypeCount; ++i) {
    if (set.contains(static_cast<ElementType>(i))) types.push_back(static_cast<ElementType>(i));
  }
  return types.empty() ? ElementType::kUndefined : random.pick(types);
}

}  // namespace

NodeMaker::NodeMaker(Random& random, Storage& storage, const wire::ModelProto& model)
    : random_(random), storage_(storage) {
  for (const wire::OperatorSetId& opset : model.opset_imports) {
    opsets_[opset.domain == "ai.onnx" ? "" : opset.domain] = opset.version;
  }
}

const OpVersion* NodeMaker::version_of(const OpDef& op) const {
  const auto found = opsets_.find(op.domain);
  return found == opsets_.end() ? nullptr : op.version_for(found->second);
}

std::string_view NodeMaker::new_name() {
  return storage_.keep(fmt::format("v{}", random_.below(10000)));
}

std::string_view NodeMaker::random_bytes(size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    if (!random_.one_in(3)) byte = static_cast<char>(random_.one_in(4) ? random_.next() : random_.below(4));
  }
  return storage_.keep(bytes);
}

wire::TensorProto NodeMaker::small_ints() {
  size_t count = random_.one_in(6) ? 1 : random_.below(5);
  wire::TensorProto tensor;
  tensor.data_type = static_cast<int32_t>(ElementType::kInt64);
  if (count != 1 || random_.one_in(2)) tensor.dims.add(storage_.arena(), static_cast<int64_t>(count));
  std::string raw;
  for (; count > 0; --count) {
    const int64_t value = random_.number();
    raw.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  tensor.raw_data = storage_.keep(raw);
  return tensor;
}

wire::TensorProto NodeMaker::tensor(ElementType element) {
  if (element == ElementType::kInt64 && random_.one_in(2)) return small_ints();
  wire::TensorProto tensor;
  tensor.data_type = static_cast<int32_t>(element);
  size_t count = 1;
  for (size_t rank = random_.below(4); rank > 0; --rank) {
    tensor.dims.add(storage_.arena(), static_cast<int64_t>(random_.below(12) == 0 ? 0 : 1 + random_.below(3)));
    count *= static_cast<size_t>(tensor.dims.back());
  }
  if (element == ElementType::kString) {
    std::string fields;
    for (size_t i = 0; i < count; ++i) {
      const std::string_view text = random_.pick(vocabulary().settings);
      fields += static_cast<char>(6 << 3 | 2);
      fields += static_cast<char>(text.size() & 0x7f);
      fields += text;
    }
    tensor.string_data.add(storage_.arena(), {storage_.keep(fields), false});
  } else if (element != ElementType::kUndefined) {
    tensor.raw_data = random_bytes(model::packed_bytes(element, count));
  }
  return tensor;
}

wire::TypeProto NodeMaker::type() {
  wire::TypeProto type;
  if (random_.one_in(6)) {
    auto& wrapper = random_.one_in(2) ? type.sequence : type.optional;
    wrapper = storage_.arena().make<wire::ElementTypeProto>();
    wrapper->elem_type = storage_.arena().make<wire::TypeProto>(this->type());
    return type;
  }
  type.tensor.emplace();
  type.tensor->elem_type = static_cast<int32_t>(
      random_.one_in(4) ? random_.below(30)
                        : random_.pick(std::initializer_list<size_t>{1, 1, 1, 6, 7, 7, 8, 9, 10, 11}));
  if (random_.one_in(8)) return type;
  type.tensor->shape.emplace();
  for (size_t rank = random_.below(5); rank > 0; --rank) {
    wire::Dimension& dim = type.tensor->shape->dims.add(storage_.arena());
    if (random_.one_in(3)) {
      dim.param = symbol(random_);
    } else if (!random_.one_in(10)) {
      dim.value = random_.size();
    }
  }
  return type;
}

std::vector<wire::NodeProto> NodeMaker::make(const Scope& scope) {
  const OpDef* op = nullptr;
  const OpVersion* version = nullptr;
  for (int attempt = 0; attempt < 20 && !version; ++attempt) {
    op = random_.pick(all_ops());
    version = version_of(*op);
  }
  if (!version) return {};
  std::vector<wire::NodeProto> nodes;
  wire::NodeProto node;
  node.op_type = op->name;
  if (!op->domain.empty()) node.domain = op->domain;
  std::unordered_map<std::string_view, ElementType> bound;
  for (const Formal& formal : version->inputs) {
    const bool variadic = formal.arity == Arity::kVariadic || formal.arity == Arity::kVariadicMixed;
    size_t count = 1;
    if (variadic) count = static_cast<size_t>(formal.min_arity) + random_.below(3);
    if (formal.arity == Arity::kOptional && random_.one_in(2)) count = 0;
    for (size_t i = 0; i < count; ++i) {
      node.inputs.add(storage_.arena(), argument(formal, *version, scope, bound, nodes));
    }
    if (count == 0 && !variadic) node.inputs.add(storage_.arena(), "");
  }
  while (!node.inputs.empty() && node.inputs.back().empty()) node.inputs.truncate(node.inputs.size() - 1);
  for (const Formal& formal : version->outputs) {
    if (formal.arity == Arity::kOptional && random_.one_in(3)) break;
    const bool variadic = formal.arity == Arity::kVariadic || formal.arity == Arity::kVariadicMixed;
    for (size_t i = variadic ? 1 + random_.below(3) : 1; i > 0; --i) node.outputs.add(storage_.arena(), new_name());
  }
  set_attributes(node, *version, scope);
  nodes.push_back(std::move(node));
  return nodes;
}

// A value that fits, a new constant, or, at times, anything.
std::string_view NodeMaker::argument(const Formal& formal, const OpVersion& version, const Scope& scope,
                                     std::unordered_map<std::string_view, ElementType>& bound,
                                     std::vector<wire::NodeProto>& constants) {
  ElementTypeSet allowed = tensors_of(formal, version);
  const auto chosen = bound.find(formal.type);
  if (chosen != bound.end() && formal.arity != Arity::kVariadicMixed) allowed = ElementTypeSet::of(chosen->second);
  std::vector<Scope::Visible> fitting;
  for (const Scope::Visible& value : scope.values) {
    if (value.element == ElementType::kUndefined ? random_.one_in(3) : allowed.contains(value.element)) {
      fitting.push_back(value);
    }
  }
  if (!scope.values.empty() && random_.one_in(20)) return random_.pick(scope.values).name;
  if (!fitting.empty() && (allowed.bits() == 0 || !random_.one_in(3))) {
    const Scope::Visible value = random_.pick(fitting);
    if (value.element != ElementType::kUndefined) bound.emplace(formal.type, value.element);
    return value.name;
  }
  const ElementType element = draw(random_, allowed);
  if (element == ElementType::kUndefined) return scope.values.empty() ? "" : random_.pick(scope.values).name;
  bound.emplace(formal.type, element);
  wire::NodeProto constant;
  constant.op_type = "Constant";
  constant.outputs.add(storage_.arena(), new_name());
  wire::AttributeProto& value = constant.attributes.add(storage_.arena());
  value.name = "value";
  value.type = wire::AttributeProto::kTensor;
  value.t = storage_.arena().make<wire::TensorProto>(tensor(element));
  constants.push_back(std::move(constant));
  return constants.back().outputs[0];
}

void NodeMaker::set_attributes(wire::NodeProto& node, const OpVersion& version, const Scope& scope) {
  node.attributes.clear();
  for (const AttributeDef& def : version.attributes) {
    if (def.required || random_.one_in(3)) node.attributes.add(storage_.arena(), attribute(def, scope));
  }
}

wire::AttributeProto NodeMaker::attribute(const AttributeDef& def, const Scope& scope) {
  wire::AttributeProto made;
  made.name = def.name;
  made.type = static_cast<int32_t>(def.kind);
  const auto text = [&] { return random_.pick(vocabulary().settings); };
  const size_t count = random_.below(5);
  switch (def.kind) {
    case AttributeKind::kInt:
      made.i = random_.number();
      break;
    case AttributeKind::kFloat:
      made.f = static_cast<float>(random_.real());
      break;
    case AttributeKind::kString:
      made.s = text();
      break;
    case AttributeKind::kInts:
      for (size_t i = 0; i < count; ++i) made.ints.add(storage_.arena(), random_.number());
      break;
    case AttributeKind::kFloats:
      for (size_t i = 0; i < count; ++i) made.floats.add(storage_.arena(), static_cast<float>(random_.real()));
      break;
    case AttributeKind::kStrings:
      for (size_t i = 0; i < count; ++i) made.strings.add(storage_.arena(), text());
      break;
    case AttributeKind::kTensor:
      made.t = storage_.arena().make<wire::TensorProto>(tensor(static_cast<ElementType>(1 + random_.below(28))));
      break;
    case AttributeKind::kGraph:
      made.g = storage_.arena().make<wire::GraphProto>(body(scope));
      break;
    case AttributeKind::kTypeProto:
      made.tp = storage_.arena().make<wire::TypeProto>(type());
      break;
    default:
      break;
  }
  return made;
}

wire::GraphProto NodeMaker::body(const Scope& scope) {
  if (!scope.graphs.empty() && random_.one_in(2)) return wire::clone(*random_.pick(scope.graphs), storage_.arena());
  wire::GraphProto graph;
  graph.name = "b";
  for (size_t i = random_.below(4); i > 0; --i) {
    wire::ValueInfoProto& input = graph.inputs.add(storage_.arena());
    input.name = new_name();
    input.type = type();
  }
  for (size_t i = 1 + random_.below(3); i > 0; --i) {
    wire::NodeProto& node = graph.nodes.add(storage_.arena());
    node.op_type = "Identity";
    const bool own = !graph.inputs.empty() && (scope.values.empty() || !random_.one_in(3));
    if (!own && scope.values.empty()) break;
    node.inputs.add(storage_.arena(), own ? random_.pick(graph.inputs).name : random_.pick(scope.values).name);
    node.outputs.add(storage_.arena(), new_name());
    graph.outputs.add(storage_.arena()).name = node.outputs[0];
  }
  return graph;
}

}  // namespace treadle::fuzz
