#include "opt/standard_form.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "op/node.h"
#include "op/registry.h"
#include "opt/match.h"
#include "opt/standard_nodes.h"
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

void set_inputs(ir::Node& node, std::initializer_list<ir::Value*> inputs) {
  node.inputs.clear();
  for (ir::Value* v : inputs) node.inputs.push_back(v);
  node.input_count = static_cast<uint32_t>(inputs.size());
}

bool is_matrix(const ir::Value* v) {
  return v && v->type.is_tensor() && v->type.has_shape && v->type.shape.size() == 2;
}

namespace {

bool is_zero(const ir::Value* v) {
  if (!v) return true;
  return v->is_constant() && v->constant.type() == ElementType::kFloat && v->constant.element_count() == 1 &&
         *v->constant.data<float>() == 0;
}

std::optional<std::vector<int64_t>> int64s_of(const ir::Value* v) {
  if (!v || !v->is_constant() || v->constant.type() != ElementType::kInt64) return {};
  const int64_t* data = v->constant.data<int64_t>();
  return std::vector<int64_t>(data, data + v->constant.element_count());
}

const ir::Value* input(const ir::Node& node, size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : nullptr;
}

// What a Pad adds on every side, where it puts zeros around constant numbers of elements.
std::optional<std::vector<int64_t>> zeros_of(const ir::Node& pad) {
  if (pad.attributes.get_string("mode", "constant") != "constant" || input(pad, 3)) return {};
  if (pad.version->since >= 11) return is_zero(input(pad, 2)) ? int64s_of(input(pad, 1)) : std::nullopt;
  if (pad.attributes.get_float("value", 0) != 0) return {};
  const auto pads = pad.attributes.get_ints("pads");
  return std::vector<int64_t>(pads.begin(), pads.end());
}

bool pads_with_zeros(ir::Node& conv, const Uses& uses) {
  if (!is(conv, "Conv")) return false;
  const ir::Node* pad = sole_producer(conv, conv.inputs[0], uses, {"Pad"});
  const auto around = pad ? zeros_of(*pad) : std::nullopt;
  if (!around || around->size() < 6 || conv.attributes.get_string("auto_pad", "NOTSET") != "NOTSET") return false;
  const size_t rank = around->size() / 2, axes = rank - 2;
  std::vector<int64_t> pads(2 * axes);
  const auto own = conv.attributes.get_ints("pads");
  if (!own.empty() && own.size() != pads.size()) return false;
  for (size_t i = 0; i < around->size(); ++i) {
    const size_t axis = i % rank;
    if (axis < 2 ? (*around)[i] != 0 : (*around)[i] < 0) return false;
    if (axis < 2) continue;
    const size_t at = i / rank * axes + axis - 2;
    pads[at] = (*around)[i] + (own.empty() ? 0 : own[at]);
  }
  conv.attributes.set(ir::Attribute::of("pads", std::move(pads)));
  conv.inputs[0] = pad->inputs[0];
  return true;
}

// Whether Gemm takes `v` as what it adds to a result of these sizes.
bool is_addend(const ir::Value* v, const Dim& rows, const Dim& columns) {
  if (!v || !v->type.has_shape || v->type.shape.size() > 2) return false;
  const Shape& shape = v->type.shape;
  if (shape.empty()) return true;
  const Dim& last = shape[shape.size() - 1];
  const bool fits = last.is_known(1) || same(last, columns);
  return fits && (shape.size() == 1 || shape[0].is_known(1) || same(shape[0], rows));
}

bool adds_to_product(const ir::Graph& graph, ir::Node& add, const Uses& uses) {
  if (!is(add, "Add") || !add.outputs[0] || !is_float(add.outputs[0]->type.element)) return false;
  const OpVersion* const version = standard_version(graph, "Gemm");
  if (!version || version->since < 7) return false;  // broadcasts by an attribute
  for (size_t i = 0; i < 2; ++i) {
    const ir::Node* product = sole_producer(add, add.inputs[i], uses, {"MatMul"});
    if (!product) continue;
    ir::Value *const a = product->inputs[0], *const b = product->inputs[1], *const c = add.inputs[1 - i];
    if (!is_matrix(a) || !is_matrix(b) || !is_addend(c, a->type.shape[0], b->type.shape[1])) continue;
    const ir::Name name = product->name;
    become(add, require_op("Gemm"), *version);
    add.name = name;
    set_inputs(add, {a, b, c});
    return true;
  }
  return false;
}

bool swaps_axes(const ir::Node* transpose) {
  if (!transpose || !is(*transpose, "Transpose") || !is_matrix(transpose->inputs[0])) return false;
  const auto perm = transpose->attributes.get_ints("perm");
  return perm.empty() || (perm.size() == 2 && perm[0] == 1 && perm[1] == 0);
}

bool reads_transposed(ir::Node& gemm) {
  if (!is(gemm, "Gemm")) return false;
  for (const auto& [operand, attribute] : {std::pair<size_t, const char*>{0, "transA"}, {1, "transB"}}) {
    const ir::Node* transpose = gemm.inputs[operand] ? gemm.inputs[operand]->producer : nullptr;
    if (!swaps_axes(transpose)) continue;
    gemm.inputs[operand] = transpose->inputs[0];
    gemm.attributes.set(ir::Attribute::of(attribute, gemm.attributes.get_int(attribute) == 0 ? 1 : 0));
  }
  return true;
}

// --- nodes that go

bool is_training(const ir::Node& dropout) {
  if (dropout.version->since < 7) return dropout.attributes.get_int("is_test") == 0;
  const ir::Value* mode = input(dropout, 2);
  return mode && !(mode->is_constant() && mode->constant.type() == ElementType::kBool &&
                   mode->constant.element_count() == 1 && !*mode->constant.data<bool>());
}

// Whether every number of one type is one of the other type.
bool holds_all(ElementType from, ElementType to) {
  const bool kept = (is_float(from) && is_float(to)) || (is_signed_integer(from) && is_signed_integer(to)) ||
                    (is_integer(from) && is_integer(to) && !is_signed_integer(from) && !is_signed_integer(to));
  return kept && byte_width(from) < byte_width(to) && byte_width(from) >= 2;
}

// What a node's result is a copy of; null where it is none.
ir::Value* copied_by(const ir::Node& node, const ValueSet& read) {
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

// The only axis along which a scale or zero point has several elements; 0 where it has one element.
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
  remove_copies(graph);
  const Uses uses(graph.top());
  ir::for_each_node(graph.top(), [&](ir::Node& node) {
    if (pads_with_zeros(node, uses) || adds_to_product(graph, node, uses)) return;
    reads_transposed(node);
  });
}

}  // namespace treadle::opt
