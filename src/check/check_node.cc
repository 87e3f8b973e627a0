// Operators: known in the imported version, and called as that version requires.
#include <algorithm>
#include <bit>

#include "base/spelling.h"
#include "check/walk.h"
#include "model/functions.h"
#include "op/registry.h"

namespace treadle::checking {

using ir::AttributeKind;

namespace {

// Operators of ai.onnx that were removed before operator sets were numbered. Readers ignore them.
constexpr std::string_view kExperimental[] = {"ATen",
                                              "Affine",
                                              "ConstantFill",
                                              "Crop",
                                              "DynamicSlice",
                                              "GRUUnit",
                                              "GivenTensorFill",
                                              "ImageScaler",
                                              "ParametricSoftplus",
                                              "Scale",
                                              "ScaledTanh"};

// Domains whose operators are all known: an unknown one does not exist.
constexpr std::string_view kStandardDomains[] = {"", "ai.onnx.ml", "ai.onnx.preview.training"};

// Attributes with such names are notes of other tools.
bool is_private(std::string_view name) {
  return name.starts_with("__");
}

bool is_variadic(const Formal& formal) {
  return formal.arity == Arity::kVariadic || formal.arity == Arity::kVariadicMixed;
}

size_t least(const std::vector<Formal>& formals) {
  size_t count = 0;
  for (size_t i = 0; i < formals.size(); ++i) {
    if (formals[i].arity == Arity::kSingle) count = i + 1;
    if (is_variadic(formals[i]) && formals[i].min_arity > 0) count = i + static_cast<size_t>(formals[i].min_arity);
  }
  return count;
}

size_t most(const std::vector<Formal>& formals) {
  return !formals.empty() && is_variadic(formals.back()) ? SIZE_MAX : formals.size();
}

std::string range_text(size_t least, size_t most) {
  if (least == most) return std::to_string(least);
  if (most == SIZE_MAX) return fmt::format("{} or more", least);
  return fmt::format("{} to {}", least, most);
}

}  // namespace

const wire::AttributeProto* find_attribute(const wire::NodeProto& node, std::string_view name) {
  for (const wire::AttributeProto& attribute : node.attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

void Walk::check_node(const wire::NodeProto& node) {
  check_text(node.name, "a node's name");
  if (!node.device_configurations.empty()) check_node_devices(node);
  if (!node.metadata_props.empty()) {
    note_feature(10, node.op_type, "metadata of a node");
    check_metadata(node.metadata_props, "the node's");
  }
  if (node.op_type.empty()) {
    report(Problem::kNameMissing, {}, "the node names no operator");
    return check_attribute_names(node);
  }
  if (node.inputs.empty() && node.outputs.empty()) {
    report(Problem::kNodeEmpty, {}, "the node has neither inputs nor outputs");
  }
  if (!node.overload.empty()) note_feature(10, node.overload, "an overload");
  const Callee& callee = *resolve(node);
  check_attribute_names(node);
  if (callee.function) {
    check_against_function(node, *callee.function);
  } else if (callee.in_force()) {
    check_arguments(node, callee);
    if (!node.attributes.empty() || !callee.version->attributes.empty()) check_against_record(node, callee);
    if (!callee.op->runs()) {
      report(Problem::kNotImplemented, {}, "treadle does not {}", callee.op->missing);
    }
    if (callee.version->deprecated) {
      const int next = (callee.version + 1)->since;
      Diagnostic& d = report(Problem::kOperatorReplaced, {}, "{}-{} is deprecated: {}-{} took its place",
                             callee.op->name, callee.version->since, callee.op->name, next);
      d.hint = fmt::format("import operator set {} or later; other engines may refuse the model", next);
    } else if (callee.op->newest().deprecated) {
      report(Problem::kOperatorOutdated, {}, "{} is deprecated from operator set {} on", callee.op->name,
             callee.op->newest().since);
    }
  } else {
    report_unresolved(node, callee);
  }
  check_bodies(node, callee);
  if (callee.op) warn_of_surprises(node, callee);
}

// ---- The operator or function that a name refers to

const Callee* Walk::resolve(const wire::NodeProto& node) {
  const CalleeName name{node.domain, node.op_type, node.overload};
  size_t place = name.name.size() * 7;
  if (!name.name.empty())
    place += static_cast<uint8_t>(name.name.front()) + 31u * static_cast<uint8_t>(name.name.back());
  Surroundings::Recent& recent = here_->recent[place % std::size(here_->recent)];
  if (recent.callee && recent.name == name) return recent.callee;
  auto it = here_->callees.find(name);
  if (it == here_->callees.end()) it = here_->callees.emplace(name, make_callee(name)).first;
  recent = {name, &it->second};
  return &it->second;
}

Callee Walk::make_callee(const CalleeName& name) const {
  Callee callee;
  const std::string_view domain = canonical_domain(name.domain);
  if (const auto import = here_->imports.find(domain); import != here_->imports.end()) callee.opset = import->second;
  const auto function = functions_.find({domain, name.name, name.overload});
  if (function != functions_.end()) callee.function = function->second;
  callee.experimental = domain.empty() && std::find(std::begin(kExperimental), std::end(kExperimental), name.name) !=
                                              std::end(kExperimental);
  callee.op = find_op(domain, name.name);
  if (callee.op && callee.opset > 0) callee.version = callee.op->version_for(callee.opset);
  if (callee.version) {
    callee.min_inputs = least(callee.version->inputs);
    callee.max_inputs = most(callee.version->inputs);
    callee.min_outputs = least(callee.version->outputs);
    callee.max_outputs = most(callee.version->outputs);
  }
  return callee;
}

void Walk::report_unresolved(const wire::NodeProto& node, const Callee& callee) {
  const std::string_view domain = canonical_domain(node.domain);
  if (callee.opset == 0 && !here_->imports.contains(domain)) {
    Diagnostic& d = report(Problem::kDomainNotImported, node.domain,
                           "domain {} is not among the imported operator sets", quoted(shown_domain(domain)));
    d.hint = fmt::format("add an opset_import for it to the {}", here_->function ? "function" : "model");
    return;
  }
  if (callee.experimental) {
    report(Problem::kOperatorExperimental, {}, "{} was an experimental operator and was removed", node.op_type);
    return;
  }
  if (callee.version) {  // the operator was removed
    Diagnostic& d = report(Problem::kOperatorDeprecated, {}, "{} is deprecated since operator set {}", node.op_type,
                           callee.version->since);
    d.found = fmt::format("an import of {}", callee.opset);
    d.hint = node.op_type == "Upsample" ? "use Resize" : node.op_type == "Scatter" ? "use ScatterElements" : "";
    return;
  }
  if (callee.op) {
    Diagnostic& d = report(Problem::kOperatorTooNew, {}, "{} came with operator set {}", node.op_type,
                           callee.op->versions.front().since);
    d.found = fmt::format("an import of {}", callee.opset);
    d.hint = fmt::format("import operator set {} or later", callee.op->versions.front().since);
    return;
  }
  const bool standard =
      std::find(std::begin(kStandardDomains), std::end(kStandardDomains), domain) != std::end(kStandardDomains);
  Diagnostic& d = report(standard || options_.custom_domains ? Problem::kOperatorUnknown : Problem::kOperatorCustom, {},
                         "domain {} has no operator {}{}", quoted(shown_domain(domain)), quoted(node.op_type),
                         standard ? "" : " that treadle knows, and the model no such function");
  Speller speller(node.op_type);
  for (const OpDef* op : all_ops()) {
    if (op->name == node.op_type && op->domain != "treadle") {
      d.hint = fmt::format("domain {} has one: is the node's domain right?", quoted(shown_domain(op->domain)));
      return;
    }
    if (op->domain == domain) speller.offer(op->name);
  }
  for (const auto& [name, function] : functions_) {
    if (name.domain == domain) speller.offer(name.name);
    if (name.name == node.op_type) {
      d.hint = fmt::format("there is a function {}: are domain and overload right?",
                           quoted(model::function_name(*function)));
      return;
    }
  }
  if (!speller.best().empty()) d.hint = fmt::format("did you mean {}?", speller.best());
}

// ---- Inputs and outputs

void Walk::check_arguments(const wire::NodeProto& node, const Callee& callee) {
  const size_t inputs = node.inputs.size(), outputs = node.outputs.size();
  if (inputs < callee.min_inputs || inputs > callee.max_inputs) {
    Diagnostic& d = report(Problem::kInputCount, {}, "the number of inputs");
    d.expected = range_text(callee.min_inputs, callee.max_inputs);
    d.found = std::to_string(inputs);
    for (const OpVersion& other : callee.op->versions) {
      if (inputs < least(other.inputs) || inputs > most(other.inputs)) continue;
      d.hint = fmt::format("{}-{} takes as many; the model imports operator set {}", callee.op->name, other.since,
                           callee.opset);
    }
  }
  if (outputs < callee.min_outputs || outputs > callee.max_outputs) {
    Diagnostic& d = report(Problem::kOutputCount, {}, "the number of outputs");
    d.expected = range_text(callee.min_outputs, callee.max_outputs);
    d.found = std::to_string(outputs);
  }
  const OpVersion& version = *callee.version;
  for (size_t i = 0; i < std::min(inputs, version.inputs.size()); ++i) {
    if (!node.inputs[i].empty() || version.inputs[i].arity != Arity::kSingle) continue;
    report(Problem::kInputMissing, {}, "input {} ({}) is required, but left out", i, version.inputs[i].name);
  }
  for (size_t i = 0; i < std::min(outputs, version.outputs.size()); ++i) {
    if (!node.outputs[i].empty() || version.outputs[i].arity != Arity::kSingle) continue;
    report(Problem::kOutputMissing, {}, "output {} ({}) is required, but has no name", i, version.outputs[i].name);
  }
}

void Walk::check_against_function(const wire::NodeProto& node, const wire::FunctionProto& function) {
  if (!here_->imports.contains(canonical_domain(node.domain))) {
    report(Problem::kDomainNotImported, node.domain, "domain {} is not among the imported operator sets",
           quoted(shown_domain(node.domain)));
  }
  const auto too_many = [&](Problem problem, std::string_view what, size_t most, size_t count) {
    if (count <= most) return;
    Diagnostic& d =
        report(problem, {}, "the number of {} of a call of function {}", what, quoted(model::function_name(function)));
    d.expected = fmt::format("at most {}", most);
    d.found = std::to_string(count);
  };
  too_many(Problem::kInputCount, "inputs", function.inputs.size(), node.inputs.size());
  too_many(Problem::kOutputCount, "outputs", function.outputs.size(), node.outputs.size());
  if (node.attributes.empty()) return;
  std::unordered_set<std::string_view> declared(function.attributes.begin(), function.attributes.end());
  for (const wire::AttributeProto& attribute : function.attribute_protos) declared.insert(attribute.name);
  for (const wire::AttributeProto& attribute : node.attributes) {
    if (declared.contains(attribute.name) || is_private(attribute.name)) continue;
    Diagnostic& d =
        report(Problem::kAttributeUnread, attribute.name, "function {} declares no attribute {}, so nothing reads it",
               quoted(model::function_name(function)), quoted(attribute.name));
    Speller speller(attribute.name);
    for (const std::string_view name : declared) speller.offer(name);
    if (!speller.best().empty()) d.hint = fmt::format("did you mean {}?", quoted(speller.best()));
  }
}

// ---- Attributes

void Walk::check_attribute_names(const wire::NodeProto& node) {
  constexpr size_t kFew = 16;
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < node.attributes.size(); ++i) {
    const std::string_view name = node.attributes[i].name;
    bool twice = false;
    if (node.attributes.size() > kFew) {
      twice = !seen.insert(name).second;
    } else {
      for (size_t j = 0; j < i; ++j) twice |= node.attributes[j].name == name;
    }
    if (twice) report(Problem::kAttributeDuplicate, name, "attribute {} is given twice", quoted(name));
    check_attribute(node.attributes[i]);
  }
}

namespace {

// Bit k: the field of AttributeKind k is present.
uint32_t fields_of(const wire::AttributeProto& a) {
  const auto bit = [](AttributeKind kind, bool present) { return uint32_t{present} << static_cast<int>(kind); };
  return bit(AttributeKind::kFloat, a.f.has_value()) | bit(AttributeKind::kInt, a.i.has_value()) |
         bit(AttributeKind::kString, a.s.has_value()) | bit(AttributeKind::kTensor, a.t != nullptr) |
         bit(AttributeKind::kGraph, a.g != nullptr) | bit(AttributeKind::kTypeProto, a.tp != nullptr) |
         bit(AttributeKind::kSparseTensor, a.sparse_tensor != nullptr) |
         bit(AttributeKind::kFloats, !a.floats.empty()) | bit(AttributeKind::kInts, !a.ints.empty()) |
         bit(AttributeKind::kStrings, !a.strings.empty()) | bit(AttributeKind::kTensors, !a.tensors.empty()) |
         bit(AttributeKind::kGraphs, !a.graphs.empty()) |
         bit(AttributeKind::kSparseTensors, !a.sparse_tensors.empty()) |
         bit(AttributeKind::kTypeProtos, !a.type_protos.empty());
}

constexpr uint32_t kMessageFields =
    1u << static_cast<int>(AttributeKind::kTensor) | 1u << static_cast<int>(AttributeKind::kGraph) |
    1u << static_cast<int>(AttributeKind::kSparseTensor) | 1u << static_cast<int>(AttributeKind::kTypeProto);

// The kind that an attribute states; before IR version 2, the kind of the field that is present.
AttributeKind kind_of(const wire::AttributeProto& attribute) {
  if (attribute.type > 0 && attribute.type <= 14) return static_cast<AttributeKind>(attribute.type.get());
  const uint32_t fields = fields_of(attribute);
  return std::popcount(fields) == 1 ? static_cast<AttributeKind>(std::countr_zero(fields)) : AttributeKind::kUndefined;
}

std::string fields_text(uint32_t fields) {
  std::string text;
  for (int kind = 1; kind <= 14; ++kind) {
    if (!(fields >> kind & 1)) continue;
    if (!text.empty()) text += ", ";
    text += ir::kind_name(static_cast<AttributeKind>(kind));
  }
  return text.empty() ? "none" : text;
}

}  // namespace

void Walk::check_attribute(const wire::AttributeProto& attribute) {
  const std::string_view name = attribute.name;
  if (name.empty()) report(Problem::kNameMissing, {}, "an attribute has no name");
  check_text(name, "an attribute's name");
  const uint32_t fields = fields_of(attribute);
  if (attribute.type < 0 || attribute.type > 14) {
    report(Problem::kAttributeType, name, "attribute {} is of type {}, and there is no such type", quoted(name),
           attribute.type);
  } else if (attribute.type == 0 && ir_version_ >= 2) {
    report(Problem::kAttributeType, name, "attribute {} does not say its type", quoted(name)).found =
        fields_text(fields);
  } else if (const uint32_t own = attribute.type > 0 ? 1u << attribute.type : 0; own != 0 && (fields & ~own) != 0) {
    Diagnostic& d =
        report(Problem::kAttributeType, name, "attribute {} holds another value than its type says", quoted(name));
    d.expected = fields_text(own);
    d.found = fields_text(fields);
  }
  if (std::popcount(fields) > 1) {
    Diagnostic& d = report(Problem::kAttributeValue, name, "attribute {} holds several values", quoted(name));
    d.expected = "one";
    d.found = fields_text(fields);
  }
  if (!attribute.ref_attr_name.empty()) {
    if (!here_->function) {
      report(Problem::kAttributeReference, name,
             "attribute {} refers to a function's parameter {}, but is in no function", quoted(name),
             quoted(attribute.ref_attr_name));
    } else if (!here_->parameters.contains(attribute.ref_attr_name)) {
      Diagnostic& d =
          report(Problem::kAttributeReference, name, "attribute {} refers to {}, which the function does not have",
                 quoted(name), quoted(attribute.ref_attr_name));
      Speller speller(attribute.ref_attr_name);
      for (const std::string_view parameter : here_->parameters) speller.offer(parameter);
      if (!speller.best().empty()) d.hint = fmt::format("did you mean {}?", quoted(speller.best()));
    }
    if (fields != 0) {
      report(Problem::kAttributeValue, name, "attribute {} refers to a parameter and holds a value as well",
             quoted(name));
    }
  } else if (fields == 0 && attribute.type > 0 && attribute.type <= 14 && (1u << attribute.type & kMessageFields)) {
    report(Problem::kAttributeValue, name, "attribute {} says that it is of type {}, but holds none", quoted(name),
           fields_text(1u << attribute.type));
  }
  if ((fields & ~(1u << static_cast<int>(AttributeKind::kInt))) != 0) check_attribute_contents(attribute);
}

void Walk::check_attribute_contents(const wire::AttributeProto& attribute) {
  const What what("attribute", attribute.name);
  if (attribute.t) check_tensor(*attribute.t, what);
  if (attribute.sparse_tensor) check_sparse_tensor(*attribute.sparse_tensor, what);
  if (attribute.tp) check_type(*attribute.tp, true, attribute.name, what.text());
  for (const wire::TensorProto& tensor : attribute.tensors) check_tensor(tensor, what);
  for (const wire::SparseTensorProto& sparse : attribute.sparse_tensors) check_sparse_tensor(sparse, what);
  for (const wire::TypeProto& type : attribute.type_protos) check_type(type, true, attribute.name, what.text());
}

void Walk::check_against_record(const wire::NodeProto& node, const Callee& callee) {
  const OpVersion& version = *callee.version;
  for (const wire::AttributeProto& attribute : node.attributes) {
    const AttributeDef* def = version.attribute(attribute.name);
    if (!def) {
      if (!is_private(attribute.name) && !version.any_attributes) report_unknown_attribute(attribute, callee);
      continue;
    }
    if (def->kind == AttributeKind::kUndefined) continue;  // any kind is allowed
    const AttributeKind kind = kind_of(attribute);
    if (kind == def->kind || (attribute.type == 0 && ir_version_ >= 2)) continue;
    Diagnostic& d =
        report(Problem::kAttributeType, attribute.name, "attribute {} is of the wrong type", quoted(attribute.name));
    d.expected = ir::kind_name(def->kind);
    d.found = kind == AttributeKind::kUndefined ? "none" : ir::kind_name(kind);
  }
  for (const AttributeDef& def : version.attributes) {
    if (!def.required || find_attribute(node, def.name)) continue;
    report(Problem::kAttributeMissing, {}, "required attribute {} ({}) is missing", quoted(def.name),
           ir::kind_name(def.kind));
  }
}

void Walk::report_unknown_attribute(const wire::AttributeProto& attribute, const Callee& callee) {
  // The only operator whose schema accepts attributes that it does not name.
  if (callee.op->name == "LayerNormalization" && callee.op->domain.empty()) return;
  Diagnostic& d = report(Problem::kAttributeUnknown, attribute.name, "{}-{} has no attribute {}", callee.op->name,
                         callee.version->since, quoted(attribute.name));
  for (const OpVersion& other : callee.op->versions) {
    if (!other.attribute(attribute.name)) continue;
    d.hint = fmt::format("{}-{} has it{}; the model imports operator set {}", callee.op->name, other.since,
                         other.since < callee.version->since ? ", later ones have not" : "", callee.opset);
    for (const Formal& input : callee.version->inputs) {
      if (input.name == attribute.name) {
        d.hint = fmt::format("from {}-{} on it is an input", callee.op->name, callee.version->since);
      }
    }
    return;
  }
  Speller speller(attribute.name);
  for (const AttributeDef& def : callee.version->attributes) speller.offer(def.name);
  if (!speller.best().empty()) d.hint = fmt::format("did you mean {}?", quoted(speller.best()));
}

// ---- Bodies

void Walk::check_bodies(const wire::NodeProto& node, const Callee& callee) {
  const Control control = callee.op && callee.version ? callee.op->control : Control::kNone;
  for (const wire::AttributeProto& attribute : node.attributes) {
    if (attribute.g) {
      if (control != Control::kNone) check_signature(node, callee, attribute);
      check_body(*attribute.g, attribute.name);
    }
    for (const wire::GraphProto& graph : attribute.graphs) check_body(graph, attribute.name);
  }
}

// The inputs that the node passes. Before IR version 4 initializers had to be listed as inputs, but those of bodies are
// not passed.
size_t Walk::body_inputs(const wire::GraphProto& body) const {
  if (ir_version_ > 3 || body.initializers.empty()) return body.inputs.size();
  std::unordered_set<std::string_view> initialized;
  for (const wire::TensorProto& tensor : body.initializers) initialized.insert(tensor.name);
  return static_cast<size_t>(std::count_if(body.inputs.begin(), body.inputs.end(), [&](const wire::ValueInfoProto& i) {
    return !initialized.contains(i.name);
  }));
}

// Compares inputs and outputs of a body with those that its node passes and expects.
void Walk::check_signature(const wire::NodeProto& node, const Callee& callee, const wire::AttributeProto& attribute) {
  const wire::GraphProto& body = *attribute.g;
  size_t inputs = 0, least_outputs = node.outputs.size();
  if (callee.op->control == Control::kLoop || callee.op->control == Control::kScan) {
    const BeforeStates before = before_states(callee.op->control, callee.version->since);
    const size_t handed_on = node.inputs.size() - std::min(before.inputs, node.inputs.size());
    inputs = before.body_inputs + handed_on;
    least_outputs = before.body_outputs + std::max(node.outputs.size(), handed_on);
  }
  if (callee.op->control == Control::kScan) {
    const wire::AttributeProto* scanned = find_attribute(node, "num_scan_inputs");
    if (!scanned || !scanned->i) return;
    if (*scanned->i < 1 || static_cast<uint64_t>(*scanned->i) > inputs) {
      Diagnostic& d = report(Problem::kBodySignature, scanned->name, "num_scan_inputs");
      d.expected = fmt::format("1 to {}", inputs);
      d.found = std::to_string(*scanned->i);
      return;
    }
    least_outputs = std::max(node.outputs.size(), inputs - static_cast<size_t>(*scanned->i));
  }
  const size_t taken = body_inputs(body);
  if (taken != inputs) {
    Diagnostic& d = report(Problem::kBodySignature, attribute.name, "the number of inputs of the graph in {}",
                           quoted(attribute.name));
    d.expected = std::to_string(inputs);
    d.found = std::to_string(taken);
    if (callee.op->control == Control::kLoop)
      d.hint = "a Loop's body takes the iteration's number, the condition, then the states";
  }
  if (body.outputs.size() < least_outputs) {
    Diagnostic& d = report(Problem::kBodySignature, attribute.name, "the number of outputs of the graph in {}",
                           quoted(attribute.name));
    d.expected = fmt::format("{} or more", least_outputs);
    d.found = std::to_string(body.outputs.size());
    if (callee.op->control == Control::kLoop)
      d.hint = "a Loop's body gives the condition, then the states, then scan outputs";
  }
}

void Walk::check_body(const wire::GraphProto& graph, std::string_view attribute) {
  Frame frame;
  frame.attribute = attribute;
  frames_.push_back(std::move(frame));
  open_graph(graph, false);
  close_graph();
  frames_.pop_back();
}

}  // namespace treadle::checking
