// What runs, but not as its author may think.
#include "check/walk.h"

namespace treadle::checking {

namespace {

// Whether a tensor is the single bool true.
bool is_true(const wire::TensorProto& tensor) {
  if (tensor.data_type != static_cast<int32_t>(ElementType::kBool)) return false;
  if (tensor.raw_data && tensor.raw_data->size() == 1) return (*tensor.raw_data)[0] != 0;
  bool yes = false;
  tensor.int32_data.for_each([&](int32_t value) { yes = value != 0; });
  return yes;
}

// Follows a name of a body through Identity to what it is in the end.
class BodyNames {
 public:
  explicit BodyNames(const wire::GraphProto& body) : body_(body) {
    for (const wire::NodeProto& node : body.nodes) {
      for (const std::string_view output : node.outputs) makers_.emplace(output, &node);
    }
  }

  const wire::NodeProto* maker(std::string_view name) const {
    const auto it = makers_.find(name);
    return it == makers_.end() ? nullptr : it->second;
  }
  std::string_view behind_identities(std::string_view name) const {
    for (size_t steps = 0; steps <= body_.nodes.size(); ++steps) {
      const wire::NodeProto* node = maker(name);
      if (!node || node->op_type != "Identity" || node->inputs.size() != 1) break;
      name = node->inputs[0];
    }
    return name;
  }
  bool is_constant_true(std::string_view name) const {
    for (const wire::TensorProto& tensor : body_.initializers) {
      if (tensor.name == name) return is_true(tensor);
    }
    const wire::NodeProto* node = maker(name);
    if (!node || node->op_type != "Constant") return false;
    const wire::AttributeProto* value = find_attribute(*node, "value");
    return value && value->t && is_true(*value->t);
  }

 private:
  const wire::GraphProto& body_;
  std::unordered_map<std::string_view, const wire::NodeProto*> makers_;
};

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
  if (callee.op->control == Control::kLoop) {
    warn_of_loop(node);
  } else if (callee.op->control == Control::kScan) {
    const wire::AttributeProto* body = find_attribute(node, "body");
    const wire::AttributeProto* scanned = find_attribute(node, "num_scan_inputs");
    const size_t first = callee.version->since == 8 ? 1 : 0;
    if (!body || !body->g || !scanned || !scanned->i || *scanned->i < 0) return;
    const uint64_t taken = static_cast<uint64_t>(*scanned->i) + first;
    if (taken <= node.inputs.size()) warn_of_states(*body->g, 0, 0, node.inputs.size() - taken);
  }
}

void Walk::warn_of_loop(const wire::NodeProto& node) {
  const wire::AttributeProto* attribute = find_attribute(node, "body");
  if (!attribute || !attribute->g || attribute->g->outputs.empty() || attribute->g->inputs.size() < 2) return;
  const wire::GraphProto& body = *attribute->g;
  const bool has_count = !node.inputs.empty() && !node.inputs[0].empty();
  const bool has_condition = node.inputs.size() > 1 && !node.inputs[1].empty();
  const std::string_view result = body.outputs[0].name;
  const BodyNames names(body);
  const std::string_view source = names.behind_identities(result);
  // A trip runs on a true condition: handed on as it came in, it stays true.
  const bool stays_true = source == body.inputs[1].name || names.is_constant_true(source);
  if (!has_condition && !stays_true) {
    Diagnostic& d = report(Problem::kLoopCondition, result,
                           "cond is left out, so the Loop runs all its trips, whatever the body's condition {} says",
                           quoted(result));
    if (const wire::NodeProto* maker = names.maker(source)) {
      const std::string place =
          fmt::format("{}:body/{} ({})", path(), node_name(*maker, maker - body.nodes.data()), operator_text(*maker));
      set_origin(d, fmt::format("{} is made by {}", quoted(source), place), *std::ranges::find(maker->outputs, source));
    }
    d.hint = "give a true cond if the body is to end the Loop (some engines let it end either way)";
  }
  if (!has_count && !has_condition) {
    report(Problem::kLoopEndless, {}, "neither a trip count nor cond is given, so nothing ends the Loop").hint =
        "give one of them";
  }
  if (node.inputs.size() > 2) warn_of_states(body, 2, 1, node.inputs.size() - 2);
}

// A state's type goes around: what comes out of a trip goes into the next.
void Walk::warn_of_states(const wire::GraphProto& body, size_t first_in, size_t first_out, size_t states) {
  for (size_t i = 0; i < states; ++i) {
    if (first_in + i >= body.inputs.size() || first_out + i >= body.outputs.size()) return;
    const wire::ValueInfoProto &in = body.inputs[first_in + i], &out = body.outputs[first_out + i];
    const wire::TypeProto *before = declared(in), *after = declared(out);
    if (!before || !after || !before->tensor || !after->tensor) continue;
    if (!before->tensor->shape || !after->tensor->shape) continue;
    if (!contradict(*before->tensor->shape, *after->tensor->shape)) continue;
    Diagnostic& d = report(Problem::kStateShape, out.name,
                           "state {} goes into the body as {} and comes out as {} with another shape", i,
                           quoted(in.name), quoted(out.name));
    d.expected = shape_text(*before->tensor->shape);
    d.found = shape_text(*after->tensor->shape);
    d.hint = "declare sizes that change from trip to trip as unknown";
  }
}

}  // namespace treadle::checking
