// Convolutions absorb the nodes around them. Both passes walk each region front to back and look from a node to the
// convolution that makes its input, so that chains (Conv, Add, Relu) are absorbed link by link. The node that follows
// the convolution is turned into the convolution: at its position everything that the convolution reads is defined. The
// old convolution is then unused, and dead.
#include "opt/convolution.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "base/in_pieces.h"
#include "op/clip_bounds.h"
#include "op/node.h"
#include "op/registry.h"
#include "ops/costs.h"
#include "opt/match.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

enum ConvInput : size_t { kX, kW, kBias, kAddend };

ir::Value* input(const ir::Node& node, size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : nullptr;
}

void set_input(ir::Node& node, size_t i, ir::Value* v) {
  if (node.inputs.size() <= i) node.inputs.resize(i + 1);
  node.inputs[i] = v;
  node.input_count = static_cast<uint32_t>(node.inputs.size());
}

// The convolution that makes `v` for `user` alone.
ir::Node* sole_convolution(const ir::Node& user, const ir::Value* v, const Uses& uses) {
  ir::Node* conv = v ? v->producer : nullptr;
  if (!conv || conv->parent != user.parent || !uses.once(v)) return nullptr;
  return is(*conv, "Conv") || is(*conv, "FusedConv", "treadle") ? conv : nullptr;
}

// Turns `node` into an `op` with the attributes and inputs of `conv`; its outputs stay.
void become_convolution(ir::Node& node, const ir::Node& conv, const OpDef& op, const OpVersion& version) {
  become(node, op, version, conv.attributes);
  node.name = conv.name;
  node.inputs = conv.inputs;
  node.input_count = conv.input_count;
}
void become_convolution(ir::Node& node, const ir::Node& conv) {
  const OpDef& fused = require_op("FusedConv", "treadle");
  become_convolution(node, conv, fused, fused.newest());
}

bool is_clamped(const ir::Node& conv) {
  return conv.attributes.has("low") || conv.attributes.has("high");
}

// A constant of [C, 1, ..., 1] that is added to a result of [N, C, ...], as a bias of [C].
Tensor as_bias(const ir::Value& addend, const ir::Value& result) {
  if (!addend.is_constant() || !result.type.has_shape) return {};
  const Shape& shape = result.type.shape;
  const Dims& dims = addend.constant.dims();
  if (shape.size() < 2 || !shape[1].is_known() || dims.size() > shape.size() || dims.size() + 1 < shape.size())
    return {};
  const size_t channel = dims.size() + 1 - shape.size();
  if (dims[channel] != shape[1].value() || addend.constant.element_count() != dims[channel]) return {};
  return addend.constant.reshaped({dims[channel]});
}

bool is_wide(const ir::Value& v) {
  return v.type.element == ElementType::kFloat || v.type.element == ElementType::kDouble;
}

bool fuse_add(ir::Graph& graph, ir::Node& add, const Uses& uses) {
  if (!is(add, "Add") || add.attributes.get_int("broadcast") != 0) return false;
  for (size_t i = 0; i < 2; ++i) {
    const ir::Node* conv = sole_convolution(add, add.inputs[i], uses);
    if (!conv || is_clamped(*conv) || input(*conv, kAddend)) continue;
    const ir::Value& result = *conv->outputs[0];
    ir::Value* other = add.inputs[1 - i];
    if (!is_wide(result) || !result.type.has_shape || !other->type.has_shape) continue;
    if (!same(result.type.shape, add.outputs[0]->type.shape)) continue;
    const Tensor bias = input(*conv, kBias) ? Tensor() : as_bias(*other, result);
    if (!bias.defined() && !same(result.type.shape, other->type.shape)) continue;
    become_convolution(add, *conv);
    set_input(add, bias.defined() ? kBias : kAddend, bias.defined() ? graph.new_constant(other->name, bias) : other);
    return true;
  }
  return false;
}

bool fuse_relu(ir::Node& relu, const Uses& uses) {
  if (!is(relu, "Relu")) return false;
  const ir::Node* conv = sole_convolution(relu, relu.inputs[0], uses);
  if (!conv || is_clamped(*conv)) return false;
  become_convolution(relu, *conv);
  relu.attributes.set(ir::Attribute::of("low", 0.0f));
  return true;
}

// A bound of Clip from an attribute or a constant input; NaN if it is unknown. `sign`: the sign of the bound that
// applies if none is given.
float bound(const ir::Node& clip, size_t index, const char* attribute, float sign) {
  if (clip.version->since < kClipTakesBoundsSince) return clip.attributes.get_float(attribute, sign * INFINITY);
  const ir::Value* v = input(clip, index);
  if (!v) return sign * static_cast<float>(clip_bound_left_out(ElementType::kFloat));
  return v->is_constant() && v->constant.element_count() == 1 ? *v->constant.data<float>() : NAN;
}

// The bounds of a Clip that a convolution may absorb.
std::optional<ClampBounds> bounds_of(const ir::Node& clip) {
  if (!is(clip, "Clip") || clip.outputs[0]->type.element != ElementType::kFloat) return std::nullopt;
  const ClampBounds bounds{bound(clip, 1, "min", -1), bound(clip, 2, "max", 1)};
  return bounds.low <= bounds.high ? std::optional(bounds) : std::nullopt;
}

bool fuse_clip(ir::Node& clip, const Uses& uses) {
  const auto bounds = bounds_of(clip);
  const ir::Node* conv = bounds ? sole_convolution(clip, clip.inputs[0], uses) : nullptr;
  if (!conv || is_clamped(*conv)) return false;
  become_convolution(clip, *conv);
  clip.attributes.set(ir::Attribute::of("low", bounds->low));
  clip.attributes.set(ir::Attribute::of("high", bounds->high));
  return true;
}

// Whether `v` is the result of a convolution for `user` alone, or of sums behind a convolution that absorbs them.
bool ends_convolution(const ir::Node& user, const ir::Value* v, const Uses& uses) {
  std::vector<std::pair<const ir::Node*, const ir::Value*>> pending{{&user, v}};
  while (!pending.empty()) {
    const auto [reader, value] = pending.back();
    pending.pop_back();
    if (sole_convolution(*reader, value, uses)) return true;
    const ir::Node* add = value ? value->producer : nullptr;
    if (add && is(*add, "ScaledConvInteger", "treadle") && reader == &user) return uses.once(value);
    if (!add || !is(*add, "Add") || add->parent != user.parent || !uses.once(value)) continue;
    for (const ir::Value* term : add->inputs) {
      if (same(term->type.shape, value->type.shape)) pending.emplace_back(add, term);
    }
  }
  return false;
}

// ---------------------------------------------------------------------------------------------------------------------

bool is_constant_of(const ir::Value* v, int64_t count) {
  return v && v->is_constant() && v->constant.type() == ElementType::kFloat && v->constant.element_count() == count;
}

bool is_inference(const ir::Node& norm) {
  return norm.attributes.get_int("training_mode") == 0 && norm.attributes.get_int("spatial", 1) != 0 &&
         std::none_of(norm.outputs.begin() + 1, norm.outputs.end(), [](const ir::Value* v) { return v != nullptr; });
}

// The convolution that can absorb this normalisation of its channels.
ir::Node* foldable_convolution(const ir::Node& norm, const Uses& uses) {
  if (!is(norm, "BatchNormalization") || !is_inference(norm)) return nullptr;
  ir::Node* conv = sole_convolution(norm, norm.inputs[0], uses);
  if (!conv || !is(*conv, "Conv")) return nullptr;
  const ir::Value* w = conv->inputs[kW];
  if (!w->is_constant() || w->constant.type() != ElementType::kFloat || w->constant.rank() < 1) return nullptr;
  const int64_t channels = w->constant.dims()[0];
  const ir::Value* bias = input(*conv, kBias);
  if (bias && !is_constant_of(bias, channels)) return nullptr;
  const bool known = std::all_of(norm.inputs.begin() + 1, norm.inputs.end(),
                                 [&](const ir::Value* v) { return is_constant_of(v, channels); });
  return known && channels > 0 ? conv : nullptr;
}

// Turns `norm` into the convolution `conv` with scale and shift folded into the weights; false if there is no memory.
bool fold(ir::Graph& graph, ir::Node& norm, const ir::Node& conv) {
  const Tensor& w = conv.inputs[kW]->constant;
  const int64_t channels = w.dims()[0], each = w.element_count() / channels;
  auto weights = Tensor::allocate(ElementType::kFloat, w.dims());
  auto bias = Tensor::allocate(ElementType::kFloat, {channels});
  if (!weights.ok() || !bias.ok()) return false;
  const auto parameter = [&](size_t i, int64_t c) {
    return static_cast<double>(norm.inputs[i]->constant.data<float>()[c]);
  };
  const ir::Value* old = input(conv, kBias);
  const double epsilon = static_cast<double>(norm.attributes.get_float("epsilon", 1e-5f));
  StopPoll stop;
  for (int64_t c = 0; c < channels; ++c) {
    const double scale = parameter(1, c) / std::sqrt(parameter(4, c) + epsilon);
    const double before = old ? static_cast<double>(old->constant.data<float>()[c]) : 0.0;
    bias->mutable_data<float>()[c] = static_cast<float>((before - parameter(3, c)) * scale + parameter(2, c));
    const bool goes_on = in_pieces(each, costs::kNormalizedWeightNs, stop, [&](int64_t begin, int64_t end) {
      for (int64_t i = c * each + begin; i < c * each + end; ++i) {
        weights->mutable_data<float>()[i] = static_cast<float>(static_cast<double>(w.data<float>()[i]) * scale);
      }
    });
    if (!goes_on) return false;
  }
  ir::Value* shift = norm.inputs[2];
  become_convolution(norm, conv, *conv.op, *conv.version);
  set_input(norm, kW, graph.new_constant(conv.inputs[kW]->name, *weights));
  set_input(norm, kBias, graph.new_constant(shift->name, *bias));
  norm.outputs.resize(1);
  norm.output_count = 1;
  return true;
}

}  // namespace

std::optional<ClampBounds> clamp_of(const ir::Node& node) {
  if (is(node, "Relu") && node.outputs[0]->type.element == ElementType::kFloat) return ClampBounds{0, INFINITY};
  return bounds_of(node);
}

bool goes_into_convolution(const ir::Node& node, const Uses& uses) {
  return bounds_of(node) && ends_convolution(node, node.inputs[0], uses);
}

void fuse_convolutions(ir::Graph& graph, Remarks* remarks) {
  const auto fusible = [](const ir::Node& node) { return is(node, "Conv") || is(node, "FusedConv", "treadle"); };
  if (!has_node(graph.top(), fusible)) return;
  const Uses uses(graph.top());
  ir::for_each_node(graph.top(), [&](ir::Node& node) {
    if (node.outputs.size() != 1 || !node.outputs[0]) return;
    const ir::Node* loop = remarks ? loop_around(*node.parent) : nullptr;
    Remark entry{Change::kFused, {}, {}, node.op->name};
    if (loop) entry.node = node.name;
    if (!fuse_add(graph, node, uses) && !fuse_relu(node, uses) && !fuse_clip(node, uses)) return;
    if (!loop) return;
    entry.loop = loop->name;
    entry.into = node.name;
    remarks->add(std::move(entry));
  });
}

void fold_batch_normalization(ir::Graph& graph, Remarks* remarks) {
  if (!has_node(graph.top(), [](const ir::Node& node) { return is(node, "BatchNormalization"); })) return;
  const Uses uses(graph.top());
  std::unordered_set<const ir::Node*> folded;
  ir::for_each_node(graph.top(), [&](ir::Node& norm) {
    const ir::Node* conv = foldable_convolution(norm, uses);
    if (!conv) return;
    const std::string name = norm.name;
    const OpDef& op = *norm.op;
    if (!fold(graph, norm, *conv)) return;
    folded.insert(conv);
    const ir::Node* loop = remarks ? loop_around(*norm.parent) : nullptr;
    if (loop) remarks->add({Change::kFused, loop->name, name, op.name, norm.name});
  });
  if (folded.empty()) return;
  erase_nodes(graph.top(), [&](const ir::Region&, const ir::Node& node) { return folded.contains(&node); });
}

}  // namespace treadle::opt
