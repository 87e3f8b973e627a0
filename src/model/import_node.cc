#include <algorithm>
#include <bit>

#include "model/importer.h"
#include "op/constant_value.h"
#include "op/node.h"
#include "op/stated_rules.h"
#include "op/written_operator.h"

namespace treadle::model {

using ir::Attribute;
using ir::AttributeKind;

namespace {

std::string_view shown_domain(std::string_view domain) {
  return domain.empty() ? "ai.onnx" : domain;
}

}  // namespace

Status Importer::import_node(const wire::NodeProto& node, std::string_view path, ImportTarget& target) {
  if (open_calls_ > 0) TREADLE_TRY(count_inlined(1));
  if (const Function* function = functions_.find(node)) return call_function(node, *function, path, target);
  if (canonical_domain(node.domain).empty() && node.op_type == "Constant") return import_constant(node, target);
  return import_operator(node, path, target);
}

Result<Binding> Importer::resolve_attribute(const wire::AttributeProto& attribute, const ImportTarget& target) {
  if (attribute.ref_attr_name.empty()) return Binding{&attribute, &target.environment, &target.scope};
  if (!target.environment.parameters) {
    return error(Code::kInvalidModel, "attribute \"{}\" refers to a parameter (\"{}\"), but is in no function",
                 attribute.name, attribute.ref_attr_name);
  }
  const auto it = target.environment.parameters->find(attribute.ref_attr_name);
  return it == target.environment.parameters->end() ? Binding() : it->second;
}

// ---- Operators

Status Importer::find_operator(const wire::NodeProto& node, const ImportTarget& target, const OpDef*& op,
                               const OpVersion*& version) {
  const std::string_view domain = canonical_domain(node.domain);
  const auto opset = target.environment.opsets->find(domain);
  if (opset == target.environment.opsets->end()) {
    return error(Code::kInvalidModel, "the model imports no operator set of domain \"{}\", which operator {} is of",
                 shown_domain(domain), node.op_type);
  }
  op = options_.operators ? options_.operators(domain, node.op_type) : nullptr;
  if (!op) op = find_op(domain, node.op_type);
  if (const auto implied = std::find(implied_.begin(), implied_.end(), domain); op && implied != implied_.end()) {
    if (options_.warnings) {
      options_.warnings->push_back(fmt::format(
          "the model imports no operator set of domain \"{}\", which operator {} is of: it is read as of version {}",
          domain, node.op_type, opset->second));
    }
    implied_.erase(implied);
  }
  if (!op) {
    lacks_operator_ = !options_.broken;
    return error(Code::kNotImplemented, "operator {} of domain \"{}\" (operator set {}) is not implemented",
                 node.op_type, shown_domain(domain), opset->second);
  }
  version = op->version_for(opset->second);
  if (!version) {
    return error(Code::kInvalidModel, "operator {} came with operator set {} of domain \"{}\", the model imports {}",
                 node.op_type, op->versions.front().since, shown_domain(domain), opset->second);
  }
  if (!op->runs() && !(options_.broken && op->infer)) {
    return error(Code::kNotImplemented, "operator {} of domain \"{}\" is known, but not run: this build does not {}",
                 node.op_type, shown_domain(domain), op->missing);
  }
  // A replaced version (GroupNormalization-18) is valid for models that import it; a removed operator is not.
  if (version->deprecated && version == &op->newest() && !options_.broken) {
    return error(Code::kNotImplemented,
                 "operator {} of domain \"{}\" is deprecated since operator set {} (imported: {})", node.op_type,
                 shown_domain(domain), version->since, opset->second);
  }
  return {};
}

namespace {

// The number of inputs before a variadic one that may be empty; 0 if there is none.
size_t places_before_variadic(const OpVersion& version) {
  const std::vector<Formal>& formals = version.inputs;
  return !formals.empty() && formals.back().min_arity == 0 ? formals.size() - 1 : 0;
}

// The least number of inputs that a node has to list. It is less than the schema's if optional inputs precede a
// variadic one that may be empty: exporters leave them out as they do at the end (Loop without states).
size_t required_inputs(const OpVersion& version) {
  const std::vector<Formal>& formals = version.inputs;
  size_t count = places_before_variadic(version);
  if (count == 0) return version.min_inputs();
  while (count > 0 && formals[count - 1].arity == Arity::kOptional) --count;
  return count;
}

Status check_counts(const wire::NodeProto& node, const OpVersion& version, size_t least) {
  const size_t inputs = node.inputs.size(), outputs = node.outputs.size();
  if (inputs > 0 && !version.input(inputs - 1)) {
    return error(Code::kInvalidModel, "expected at most {} inputs, found {}", version.inputs.size(), inputs);
  }
  if (outputs > 0 && !version.output(outputs - 1)) {
    return error(Code::kInvalidModel, "expected at most {} outputs, found {}", version.outputs.size(), outputs);
  }
  if (inputs < least) {
    return error(Code::kInvalidModel, "expected at least {} inputs, found {}", least, inputs);
  }
  for (size_t i = 0; i < inputs; ++i) {
    if (!node.inputs[i].empty()) continue;
    const Formal& formal = *version.input(i);
    if (formal.arity == Arity::kOptional) continue;
    return error(Code::kInvalidModel, "input {} ({}) is required, but left out", i, formal.name);
  }
  for (size_t i = 0; i < version.outputs.size(); ++i) {
    const Formal& formal = version.outputs[i];
    if (formal.arity == Arity::kSingle && (i >= outputs || node.outputs[i].empty())) {
      return error(Code::kInvalidModel, "output {} ({}) is required, but left out", i, formal.name);
    }
  }
  return {};
}

}  // namespace

Result<const Importer::Resolved*> Importer::resolve_operator(const wire::NodeProto& node, const ImportTarget& target) {
  const std::string_view name = node.op_type;
  size_t at = name.size() * 7;
  if (!name.empty()) at += static_cast<uint8_t>(name.front()) + 31u * static_cast<uint8_t>(name.back());
  Resolved& resolved = resolved_[at % std::size(resolved_)];
  const bool known = resolved.op && resolved.opsets == target.environment.opsets && resolved.name == name &&
                     resolved.domain == node.domain;
  if (!known) {
    const OpDef* op = nullptr;
    const OpVersion* version = nullptr;
    TREADLE_TRY(find_operator(node, target, op, version));
    resolved = {target.environment.opsets,       node.domain, name, op, version, required_inputs(*version),
                places_before_variadic(*version)};
  }
  return &resolved;
}

namespace {

ir::Value* const kNoValue = nullptr;

// Allows an input whose value is an argument of the function that the call leaves out.
Status allow_left_out(const OpVersion& version, size_t i, std::string_view argument) {
  const Formal* formal = version.input(i);
  if (!formal || formal->arity == Arity::kOptional) return {};
  return error(Code::kInvalidModel, "input {} ({}) is required, but the function's call leaves out \"{}\"", i,
               formal->name, argument);
}

}  // namespace

Status Importer::import_operator(const wire::NodeProto& node, std::string_view path, ImportTarget& target) {
  TREADLE_ASSIGN(const Resolved* resolved, resolve_operator(node, target));
  TREADLE_TRY(check_counts(node, *resolved->version, resolved->required_inputs));
  ir::Node* made = graph_->new_node(target.region, resolved->op, resolved->version, path);
  for (const std::string_view input : node.inputs) {
    ir::Value* const* value = input.empty() ? &kNoValue : find(input, target);
    if (!value) return error(Code::kInvalidModel, "nothing defines the input \"{}\"", input);
    if (!*value && !input.empty()) TREADLE_TRY(allow_left_out(*resolved->version, made->inputs.size(), input));
    graph_->add_input(made, *value);
  }
  // Inputs before a variadic one have their positions even if the node lists nothing behind them.
  for (size_t i = made->inputs.size(); i < resolved->places; ++i) graph_->add_input(made, nullptr);
  made->output_count = static_cast<uint32_t>(node.outputs.size());  // `parse` may ask for it
  TREADLE_TRY(import_attributes(node, made, target));
  made->output_count = 0;
  if (made->op->control == Control::kLoop) import_loop_conditions(*made, target);
  TREADLE_TRY(define_outputs(node, made, target));
  return check_argument_rules(*made);
}

Status Importer::define_outputs(const wire::NodeProto& proto, ir::Node* node, ImportTarget& target) {
  std::string text;
  for (const std::string_view output : proto.outputs) {
    if (output.empty()) {
      graph_->add_absent_output(node);
      continue;
    }
    ir::Value* value = graph_->add_output(node, value_name(output, target, text));
    if (const wire::TypeProto* const* declared = target.types.find(output)) {
      TREADLE_ASSIGN(value->type, declared_type(output, declared, target));
    }
    TREADLE_TRY(define(output, value, target));
  }
  return {};
}

// An attribute of a node that is only inspected: numbers and texts; larger contents are described only.
ir::Attribute Importer::shown_attribute(const wire::AttributeProto& proto) {
  const AttributeKind kind = attribute_kind(proto);
  switch (kind) {
    case AttributeKind::kFloat:
    case AttributeKind::kInt:
    case AttributeKind::kString:
    case AttributeKind::kFloats:
    case AttributeKind::kInts:
    case AttributeKind::kStrings:
      if (auto attribute = read_attribute(proto.name, proto, tensors_); attribute.ok()) return std::move(*attribute);
      return {std::string(proto.name), AttributeKind::kUndefined, {}};
    default:
      return {std::string(proto.name), kind, {}};
  }
}

Status Importer::import_broken(Status status, const wire::NodeProto& node, std::string_view path,
                               ImportTarget& target) {
  const std::string_view domain = canonical_domain(node.domain);
  const bool known = find_op(domain, node.op_type) || functions_.find(node);
  std::string name = domain.empty() ? std::string(node.op_type) : fmt::format("{}.{}", domain, node.op_type);
  auto written = std::make_shared<WrittenOperator>(WrittenOperator{shortened(std::move(name)), status.message()});
  if (known) options_.broken->push_back(std::move(status));
  std::vector<std::unique_ptr<ir::Node>>& nodes = target.region->nodes;
  ir::Node* made = !nodes.empty() && nodes.back()->name == path ? nodes.back().get() : nullptr;
  if (!made) made = graph_->new_node(target.region, &opaque_op(), &opaque_op().newest(), path);
  become(*made, opaque_op());
  made->parsed = std::move(written);
  made->regions.clear();
  if (made->inputs.empty()) {
    for (const std::string_view input : node.inputs) {
      auto value = resolve(input, target);
      graph_->add_input(made, value.ok() ? *value : nullptr);
    }
  }
  for (const wire::AttributeProto& attribute : node.attributes) made->attributes.set(shown_attribute(attribute));
  for (const std::string_view output : node.outputs) {
    if (output.empty() || target.scope.defines(output)) continue;
    TREADLE_ASSIGN(Type type, declared_type(output, target));
    TREADLE_TRY(define(output, graph_->add_output(made, value_name(output, target), std::move(type)), target));
  }
  return {};
}

namespace {

uint64_t bits_of(const std::optional<float>& number) {
  return number ? uint64_t{1} << 32 | std::bit_cast<uint32_t>(*number) : 0;
}

// Whether attributes are small enough to be compared, and do not depend on the place.
bool is_plain(const wire::AttributeProto& a) {
  constexpr size_t kMost = 16;
  return !a.t && !a.g && !a.sparse_tensor && !a.tp && a.ref_attr_name.empty() && a.tensors.empty() &&
         a.graphs.empty() && a.sparse_tensors.empty() && a.type_protos.empty() && a.floats.empty() &&
         a.strings.empty() && a.ints.size() <= kMost;
}

// Compares plain attributes.
bool say_the_same(const wire::AttributeProto& a, const wire::AttributeProto& b) {
  return a.type == b.type && a.i == b.i && bits_of(a.f) == bits_of(b.f) && a.name == b.name && a.s == b.s &&
         a.ints == b.ints;
}

}  // namespace

// The cached attributes of such a node; null if they are not cached.
Importer::ReadAttributes* Importer::read_before(const wire::NodeProto& proto, const OpVersion* version) {
  if (open_calls_ > 0 || options_.as_onnx) return nullptr;
  uint64_t hash = reinterpret_cast<uintptr_t>(version);
  for (const wire::AttributeProto& attribute : proto.attributes) {
    if (!is_plain(attribute)) return nullptr;
    hash = hash * 31 + static_cast<uint64_t>(attribute.i.value_or(0)) + attribute.name.size();
    for (const int64_t number : attribute.ints) hash = hash * 31 + static_cast<uint64_t>(number);
  }
  return &read_attributes_[(hash * 0x9e3779b97f4a7c15) >> 58];
}

Status Importer::import_attributes(const wire::NodeProto& proto, ir::Node* node, ImportTarget& target) {
  ReadAttributes* before = read_before(proto, node->version);
  if (before && before->version == node->version &&
      std::equal(proto.attributes.begin(), proto.attributes.end(), before->proto->attributes.begin(),
                 before->proto->attributes.end(), say_the_same)) {
    node->attributes = before->attributes;
    node->parsed = before->parsed;
    return {};
  }
  TREADLE_TRY(read_attributes(proto, node, target));
  if (before) *before = {node->version, &proto, node->attributes, node->parsed};
  return {};
}

Status Importer::read_attributes(const wire::NodeProto& proto, ir::Node* node, ImportTarget& target) {
  const bool without_defaults = options_.as_onnx && node->op->name == "STFT";
  if (without_defaults) node->attributes = {};
  if (!proto.attributes.empty()) node->attributes.reserve(node->version->attributes.size());
  for (size_t i = 0; i < proto.attributes.size(); ++i) {
    if (is_private(proto.attributes[i].name)) continue;
    for (size_t j = 0; j < i; ++j) {
      if (proto.attributes[i].name == proto.attributes[j].name) {
        return error(Code::kInvalidModel, "attribute \"{}\" is given twice", proto.attributes[i].name);
      }
    }
    TREADLE_TRY(import_attribute(proto.attributes[i], node, target));
  }
  TREADLE_TRY(import_regions(proto, node, target));
  for (const AttributeDef& def : node->version->attributes) {
    if (!def.required || node->attributes.has(def.name) || node->region(def.name)) continue;
    return error(Code::kInvalidModel, "attribute \"{}\" ({}) is required, but missing", def.name,
                 ir::kind_name(def.kind));
  }
  if (!options_.as_onnx || !node->op->domain.empty()) TREADLE_TRY(check_attribute_rules(*node));
  Status status = parse_attributes(*node);
  if (!status.ok() && options_.as_onnx && node->op->name == "TreeEnsemble") return {};  // onnx_rules.cc checks it
  if (!status.ok() && options_.as_onnx && node->op->domain.empty()) {
    become(*node, opaque_op(), node->attributes);
    return {};
  }
  return status;
}

Status Importer::import_attribute(const wire::AttributeProto& proto, ir::Node* node, ImportTarget& target) {
  const AttributeDef* def = node->version->attribute(proto.name);
  if (!def && !node->version->any_attributes) {
    return error(Code::kInvalidModel, "the operator has no attribute \"{}\"", proto.name);
  }
  TREADLE_ASSIGN(const Binding binding, resolve_attribute(proto, target));
  if (!binding.proto) return {};
  if (!def || def->kind == AttributeKind::kUndefined) {  // any kind is allowed
    TREADLE_ASSIGN(Attribute attribute, read_attribute_once(proto.name, *binding.proto));
    node->attributes.set(std::move(attribute));
    return {};
  }
  AttributeKind kind = attribute_kind(*binding.proto);
  // An empty list without a type is still a list.
  const bool untyped = kind == AttributeKind::kUndefined && binding.proto->type == wire::AttributeProto::kUndefined;
  if (untyped && (def->kind == AttributeKind::kInts || def->kind == AttributeKind::kFloats ||
                  def->kind == AttributeKind::kStrings)) {
    return {};
  }
  if (kind != def->kind) {
    return error(Code::kInvalidModel, "expected {} as attribute \"{}\", found {}", ir::kind_name(def->kind), proto.name,
                 untyped ? "nothing" : ir::kind_name(kind));
  }
  if (kind == AttributeKind::kGraph) return {};  // import_regions()
  TREADLE_ASSIGN(Attribute attribute, read_attribute_once(proto.name, *binding.proto));
  node->attributes.set(std::move(attribute));
  return {};
}

namespace {

// Memory of an attribute that copies do not share.
size_t own_bytes(const Attribute& attribute) {
  size_t bytes = 0;
  if (const auto* text = std::get_if<std::string>(&attribute.value)) bytes = text->size();
  if (const auto* floats = std::get_if<std::vector<float>>(&attribute.value)) bytes = floats->size() * sizeof(float);
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute.value)) bytes = ints->size() * sizeof(int64_t);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
    for (const std::string& text : *texts) bytes += sizeof(std::string) + text.size();
  }
  return bytes;
}

}  // namespace

// While calls are inlined, an attribute may come again, so it is cached. Copies share tensors; other memory is counted.
Result<Attribute> Importer::read_attribute_once(std::string_view name, const wire::AttributeProto& proto) {
  constexpr size_t kBytesPerNode = 256;
  if (open_calls_ == 0) return read_attribute(name, proto, tensors_);
  auto it = attributes_.find(&proto);
  if (it == attributes_.end()) {
    TREADLE_ASSIGN(Attribute attribute, read_attribute(name, proto, tensors_));
    it = attributes_.emplace(&proto, std::move(attribute)).first;
  }
  TREADLE_TRY(count_inlined(own_bytes(it->second) / kBytesPerNode));
  Attribute attribute = it->second;
  attribute.name = name;
  return attribute;
}

// In the order in which the operator names its graph attributes, independent of the file's order.
Status Importer::import_regions(const wire::NodeProto& proto, ir::Node* node, ImportTarget& target) {
  for (const AttributeDef& def : node->version->attributes) {
    if (def.kind != AttributeKind::kGraph) continue;
    for (const wire::AttributeProto& attribute : proto.attributes) {
      if (attribute.name != def.name) continue;
      TREADLE_ASSIGN(const Binding binding, resolve_attribute(attribute, target));
      if (!binding.proto) continue;
      if (!binding.proto->g) return error(Code::kInvalidModel, "attribute \"{}\" has no graph in it", def.name);
      ir::Region* region = graph_->new_region(node, def.name);
      std::string path;
      path.reserve(node->name.size() + 1 + def.name.size());
      path.append(node->name.view()).append(1, ':').append(def.name);
      TREADLE_TRY(import_body(*binding.proto->g, path, region, binding.scope, *binding.environment));
    }
  }
  return {};
}

// ---- Constants

namespace {

Result<Tensor> constant_of(const Attribute& attribute) {
  for (const auto& [name, kind] : kConstantAttributes) {
    if (attribute.name == name && attribute.kind == kind) return constant_value(attribute);
  }
  return error(Code::kInvalidModel, "Constant has no attribute \"{}\" ({})", attribute.name,
               ir::kind_name(attribute.kind));
}

}  // namespace

Status Importer::import_constant(const wire::NodeProto& node, ImportTarget& target) {
  if (!node.inputs.empty() || node.outputs.size() != 1 || node.outputs[0].empty()) {
    return error(Code::kInvalidModel, "expected no inputs and one output of Constant, found {} and {}",
                 node.inputs.size(), node.outputs.size());
  }
  if (!target.environment.opsets->contains("")) {
    return error(Code::kInvalidModel, "the model imports no operator set of domain \"ai.onnx\", which Constant is of");
  }
  Tensor tensor;
  for (const wire::AttributeProto& proto : node.attributes) {
    if (is_private(proto.name)) continue;
    TREADLE_ASSIGN(const Binding binding, resolve_attribute(proto, target));
    if (!binding.proto) continue;
    if (proto.name == "value" && node.attributes.size() == 1 && binding.proto->t &&
        leaves_contents(*binding.proto->t)) {
      TREADLE_ASSIGN(Type type, TensorReader::type_of(*binding.proto->t));
      std::string text;
      ir::Value* value = graph_->new_value(value_name(node.outputs[0], target, text), std::move(type), &graph_->top());
      return define(node.outputs[0], value, target);
    }
    if (tensor.defined()) return error(Code::kInvalidModel, "expected one value of Constant, found several");
    if (proto.name == "value" && open_calls_ == 0 && attribute_kind(*binding.proto) == AttributeKind::kTensor &&
        binding.proto->t) {
      TREADLE_ASSIGN(tensor, tensors_.read(*binding.proto->t));
      continue;
    }
    TREADLE_ASSIGN(const Attribute attribute, read_attribute_once(proto.name, *binding.proto));
    TREADLE_ASSIGN(tensor, constant_of(attribute));
  }
  if (!tensor.defined()) return error(Code::kInvalidModel, "expected a value of Constant, found none");
  std::string text;
  ir::Value* value = graph_->new_constant(value_name(node.outputs[0], target, text), std::move(tensor));
  return define(node.outputs[0], value, target);
}

}  // namespace treadle::model
