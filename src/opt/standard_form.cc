#include "opt/standard_form.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "op/axes.h"
#include "op/node.h"
#include "op/registry.h"
#include "opt/bytes.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/standard_site.h"
#include "reference/folding.h"

namespace treadle::opt {

ir::Node* sole_producer(const ir::Node& user, const ir::Value* v, const Uses& uses,
                        std::initializer_list<std::string_view> ops) {
  ir::Node* producer = v ? v->producer : nullptr;
  if (!producer || producer->parent != user.parent || !uses.once(v)) return nullptr;
  return is_any(producer, ops) ? producer : nullptr;
}

const OpVersion* standard_version(const ir::Graph& graph, std::string_view op) {
  for (const auto& [domain, version] : graph.metadata.opset_imports) {
    if (domain.empty() || domain == "ai.onnx") return require_op(op).version_for(version);
  }
  return nullptr;
}

bool is_matrix(const ir::Value* v) {
  return v && v->type.is_tensor() && v->type.has_shape && v->type.shape.size() == 2;
}

bool is_number(const ir::Value* v, double number, double within) {
  if (!v || !v->is_constant() || v->constant.element_count() != 1) return false;
  if (!is_float(v->constant.type()) || byte_width(v->constant.type()) < 2) return false;
  return std::abs(v->constant.double_at(0) - number) <= within * std::abs(number);
}

namespace {

// A rewrite by name, and the operator of the last node that it replaces.
struct Rule {
  std::string_view name, domain, op;
  bool (*rewrite)(Site&);
};

constexpr Rule kRules[] = {
    {"float-product", "treadle", kScaledProduct, multiplies_floats},
    {"float-convolution", "treadle", kScaledConvolution, multiplies_floats},
    {"sizes-before-cast", "", "Shape", asks_before_cast},
    {"one-cast", "", "Cast", casts_once},
    {"one-division", "", "Mul", divides_once},
    {"clip-at-zero", "", "Clip", clips_at_zero},
    {"choose-other", "", "Where", chooses_other},
    {"one-encoder", "ai.onnx.ml", "LabelEncoder", encodes_once},
    {"stated-sizes", "", "Reshape", states_sizes},
    {"one-reshape", "", "Reshape", reshapes_once},
    {"reshape-for-squeeze", "", "Squeeze", reshapes_once},
    {"reshape-for-unsqueeze", "", "Unsqueeze", reshapes_once},
    {"one-transpose", "", "Transpose", permutes_once},
    {"space-to-depth", "", "Concat", moves_blocks},
    {"layer-normalization", "", "Add", is_layer_normalization},
    {"gelu", "", "Mul", is_gelu},
    {"hard-swish", "", "HardSwish", is_hard_swish},
    {"mish", "", "Mish", is_mish},
    {"padded-convolution", "", "Conv", pads_convolution},
    {"padded-average", "", "AveragePool", pads_average},
    {"product-with-addend", "", "Add", adds_to_product},
    {"product-with-sum", "", "Sum", sums_with_product},
    {"turned-product", "", "Transpose", transposes_product},
    {"product-of-transposed", "", "Gemm", reads_transposed},
};

// Returns whether a rule changed anything.
bool apply_rules(ir::Graph& graph) {
  const Facts facts(graph.top());
  bool changed = false;
  rewrite_nodes(graph.top(), [&](ir::Region& region, size_t at) {
    Site site(graph, facts, region, at);
    for (const Rule& rule : kRules) {
      changed |= is(site.node(), rule.op, rule.domain) && rule.rewrite(site);
    }
    return site.at();
  });
  return changed;
}

// --- nodes that are removed

bool is_training(const ir::Node& dropout) {
  if (dropout.version->since < 7) return dropout.attributes.get_int("is_test") == 0;
  const ir::Value* mode = input(dropout, 2);
  return mode && !(mode->is_constant() && mode->constant.type() == ElementType::kBool &&
                   mode->constant.element_count() == 1 && !*mode->constant.data<bool>());
}

// Whether a Slice takes every axis from beginning to end, for any sizes.
bool takes_all(const ir::Node& slice) {
  const auto is_full = [&](size_t i, int64_t value) {
    const auto given = constant_ints(slice, i);
    return given && std::all_of(given->begin(), given->end(), [&](int64_t v) { return v == value; });
  };
  return slice.version->since >= 10 && is_full(1, 0) && is_full(2, INT64_MAX) && (!input(slice, 4) || is_full(4, 1));
}

// The value of which the node's result is a copy; null if it is no copy.
ir::Value* copied_by(const ir::Node& node, const ValueSet& read) {
  if (is(node, "Slice")) return takes_all(node) ? node.inputs[0] : nullptr;
  if (is(node, "Dropout")) {
    const bool has_mask = node.outputs.size() > 1 && node.outputs[1] && read.contains(node.outputs[1]);
    return has_mask || is_training(node) ? nullptr : node.inputs[0];
  }
  const ir::Node* before = is(node, "Cast") && node.inputs[0] ? node.inputs[0]->producer : nullptr;
  if (!before || !is(*before, "Cast")) return nullptr;
  const ElementType first = before->inputs[0]->type.element, between = node.inputs[0]->type.element;
  return first == node.outputs[0]->type.element && holds_all(first, between) ? before->inputs[0] : nullptr;
}

void remove_copies(ir::Graph& graph) {
  const ValueSet read = values_read(graph.top());
  std::unordered_map<ir::Value*, ir::Value*> replaced;
  erase_nodes(graph.top(), [&](const ir::Region&, const ir::Node& node) {
    ir::Value* const copied = node.outputs.empty() || !node.outputs[0] ? nullptr : copied_by(node, read);
    if (copied) replaced[node.outputs[0]] = copied;
    return copied != nullptr;
  });
  ir::replace_uses(graph, replaced);
}

// --- weights that were kept as bytes

// The only axis along which a scale or zero point has several elements; 0 if it has one element.
std::optional<size_t> only_axis(const Tensor& t) {
  std::optional<size_t> found;
  for (size_t i = 0; i < t.dims().size(); ++i) {
    if (t.dims()[i] == 1) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found.value_or(0);
}

ir::Value* as_list(ir::Graph& graph, const ir::Value* v) {
  const int64_t count = v->constant.element_count();
  return graph.new_constant(v->name, v->constant.reshaped(count == 1 ? Dims{} : Dims{count}));
}

bool becomes_dequantize(ir::Graph& graph, ir::Node& node) {
  const OpVersion* const version = standard_version(graph, "DequantizeLinear");
  const ir::Value *const scale = node.inputs[1], *const zero = input(node, 2);
  const auto axis = only_axis(scale->constant);
  const int64_t scales = scale->constant.element_count();
  if (!version || !axis || (version->since < 13 && scales > 1)) return false;
  if (zero && (zero->constant.element_count() != scales || only_axis(zero->constant) != axis)) return false;
  ir::Value *const x = node.inputs[0], *const list = as_list(graph, scale);
  ir::Value* const zeros = zero ? as_list(graph, zero) : nullptr;
  become(node, require_op("DequantizeLinear"), *version);
  if (scales > 1) node.attributes.set(ir::Attribute::of("axis", static_cast<int64_t>(*axis)));
  zeros ? set_inputs(node, {x, list, zeros}) : set_inputs(node, {x, list});
  return true;
}

bool becomes_floats(ir::Node& node, reference::Folding& folding) {
  std::vector<AnyValue> inputs;
  for (const ir::Value* v : node.inputs) inputs.push_back(v ? AnyValue(v->constant) : AnyValue());
  const auto results = folding.evaluate(node, inputs);
  if (!results) return false;
  ir::Value& result = *node.outputs[0];
  result.constant = (*results)[0].tensor();
  result.producer = nullptr;
  return true;
}

}  // namespace

void dequantize_weights(ir::Graph& graph) {
  reference::Folding folding(reference::FoldLimits::none());
  erase_nodes(graph.top(), [&](const ir::Region&, ir::Node& node) {
    if (!is(node, "DequantizedWeights", "treadle") || becomes_dequantize(graph, node)) return false;
    return becomes_floats(node, folding);
  });
}

void join_neighbours(ir::Graph& graph) {
  if (!standard_version(graph, "Identity")) return;  // the model imports no standard operators
  // One rule may enable another. Each rule reduces the number of nodes, except rules that apply once.
  constexpr int kMostRounds = 10;
  for (int round = 0; round < kMostRounds && !stop_requested(); ++round) {
    remove_copies(graph);
    remove_identities(graph);
    merge_common_nodes(graph);
    remove_dead_nodes(graph);
    const bool settled = cancel_transposes(graph);
    if (!apply_rules(graph) && !settled) return;
  }
}

}  // namespace treadle::opt
