// Warnings: models that run, but perhaps not as their authors expect.
#include "check/loop_condition.h"
#include "check/walk.h"

namespace treadle::checking {

namespace {

const wire::TypeProto* declared(const wire::ValueInfoProto& value) {
  return value.type ? &*value.type : nullptr;
}

std::string shape_text(const wire::ShapeProto& shape) {
  std::string text = "[";
  for (const wire::Dimension& dim : shape.dims) {
    if (text.size() > 1) text += ",";
    text += dim.value ? std::to_string(*dim.value) : dim.param.empty() ? "?" : bare(dim.param);
  }
  return text + "]";
}

bool contradict(const wire::ShapeProto& a, const wire::ShapeProto& b) {
  if (a.dims.size() != b.dims.size()) return true;
  for (size_t i = 0; i < a.dims.size(); ++i) {
    if (a.dims[i].value && b.dims[i].value && *a.dims[i].value != *b.dims[i].value) return true;
  }
  return false;
}

}  // namespace

void Walk::warn_of_surprises(const wire::NodeProto& node, const Callee& callee) {
  if (!callee.version) return;
  if (callee.op->domain.empty()) warn_of_pads(node);
  if (callee.op->control == Control::kScan && callee.version->since < 11) warn_of_axes(node);
  if (callee.op->control != Control::kLoop && callee.op->control != Control::kScan) return;
  uint64_t scan_inputs = 0;
  if (callee.op->control == Control::kLoop) {
    warn_of_loop(node);
  } else {
    const wire::AttributeProto* scanned = find_attribute(node, "num_scan_inputs");
    if (!scanned || !scanned->i || *scanned->i < 0) return;
    scan_inputs = static_cast<uint64_t>(*scanned->i);
  }
  const wire::AttributeProto* body = find_attribute(node, "body");
  const BeforeStates before = before_states(callee.op->control, callee.version->since);
  const uint64_t others = scan_inputs + before.inputs;
  if (body && body->g && others <= node.inputs.size()) warn_of_states(*body->g, before, node.inputs.size() - others);
}

// Engines run it, but the document of this version does not allow it.
void Walk::warn_of_axes(const wire::NodeProto& node) {
  for (const std::string_view name : {"scan_input_axes", "scan_output_axes"}) {
    const wire::AttributeProto* axes = find_attribute(node, name);
    if (!axes) continue;
    bool negative = false;
    for (const int64_t axis : axes->ints) negative |= axis < 0;
    if (!negative) continue;
    report(Problem::kAxisNegative, name, "attribute {} holds a negative axis: these came with Scan-11", quoted(name))
        .hint = "count from the front, or import operator set 11 or later";
  }
}

// Convolutions with both are refused; all engines run such pools.
void Walk::warn_of_pads(const wire::NodeProto& node) {
  if (node.op_type != "AveragePool" && node.op_type != "LpPool" && node.op_type != "MaxPool") return;
  const wire::AttributeProto *automatic = find_attribute(node, "auto_pad"), *pads = find_attribute(node, "pads");
  if (!automatic || !automatic->s || automatic->s->empty() || *automatic->s == "NOTSET" || !pads) return;
  bool some = false;
  for (const int64_t pad : pads->ints) some |= pad != 0;
  if (!some) return;
  report(Problem::kAttributeIgnored, pads->name, "attribute {} is not looked at, for auto_pad is {}",
         quoted(pads->name), bare(*automatic->s));
}

void Walk::warn_of_loop(const wire::NodeProto& node) {
  const wire::AttributeProto* attribute = find_attribute(node, "body");
  if (!attribute || !attribute->g || attribute->g->outputs.empty() || attribute->g->inputs.size() < 2) return;
  const wire::GraphProto& body = *attribute->g;
  const bool has_count = !node.inputs.empty() && !node.inputs[0].empty();
  const bool has_condition = node.inputs.size() > 1 && !node.inputs[1].empty();
  const std::string_view result = body.outputs[0].name;
  const Makers names(body);
  const std::string_view source = names.behind_identities(result);
  const bool stays_true = condition_stays_true(node, body, names, *this);
  if (!has_condition && !stays_true) {
    Diagnostic& d = report(
        Problem::kLoopCondition, result,
        "cond is left out, so the Loop runs all its iterations, whatever the body's condition {} says", quoted(result));
    if (const wire::NodeProto* maker = names.maker(source)) {
      const std::string place =
          fmt::format("{}:body/{} ({})", path(), node_name(*maker, maker - body.nodes.data()), operator_text(*maker));
      set_origin(d, fmt::format("{} is made by {}", quoted(source), place), *std::ranges::find(maker->outputs, source));
    }
    d.hint =
        "give a true cond if the body is to end the Loop; onnxruntime ends it either way, and treadle does with the "
        "option loop_condition = obeyed";
  }
  if (!has_count && !has_condition) {
    report(Problem::kLoopEndless, {}, "neither a trip count nor cond is given, so nothing ends the Loop").hint =
        "give one of them";
  } else if (!has_count && stays_true && !is_false(node.inputs[1])) {
    report(Problem::kLoopEndless, result,
           "no trip count is given, and the body hands the condition {} on as true, so nothing ends the Loop once it "
           "has begun",
           quoted(body.inputs[1].name))
        .hint = "give a trip count, or compute the condition in the body";
  }
}

// Whether a visible name is the constant false.
bool Walk::is_false(std::string_view name) {
  const Definition& definition = names_->find(name);
  if (definition.by == DefinedBy::kInitializer) {
    return is_bool(*static_cast<const wire::TensorProto*>(definition.proto), false);
  }
  if (definition.by != DefinedBy::kNode || !definition.proto) return false;
  const auto& node = *static_cast<const wire::NodeProto*>(definition.proto);
  const wire::AttributeProto* value = node.op_type == "Constant" ? find_attribute(node, "value") : nullptr;
  return value && value->t && is_bool(*value->t, false);
}

const wire::FunctionProto* Walk::function_of(const wire::NodeProto& node) const {
  const auto it = functions_.find({canonical_domain(node.domain), node.op_type, node.overload});
  return it == functions_.end() ? nullptr : it->second;
}

const Makers& Walk::makers_of(const wire::FunctionProto& function) {
  return makers_.try_emplace(&function, function).first->second;
}

// A state's type inside the body should be the type that the body returns for the next iteration.
void Walk::warn_of_states(const wire::GraphProto& body, const BeforeStates& first, size_t states) {
  for (size_t i = 0; i < states; ++i) {
    const size_t at_in = first.body_inputs + i, at_out = first.body_outputs + i;
    if (at_in >= body.inputs.size() || at_out >= body.outputs.size()) return;
    const wire::ValueInfoProto &in = body.inputs[at_in], &out = body.outputs[at_out];
    const wire::TypeProto *before = declared(in), *after = declared(out);
    if (!before || !after || !before->tensor || !after->tensor) continue;
    if (!before->tensor->shape || !after->tensor->shape) continue;
    if (!contradict(*before->tensor->shape, *after->tensor->shape)) continue;
    Diagnostic& d = report(Problem::kStateShape, out.name,
                           "state {} goes into the body as {} and comes out as {} with another shape", i,
                           quoted(in.name), quoted(out.name));
    d.expected = shape_text(*before->tensor->shape);
    d.found = shape_text(*after->tensor->shape);
    d.hint = "declare sizes that change from iteration to iteration as unknown";
  }
}

}  // namespace treadle::checking
