// Products of 8-bit operands. Exporters write them in two ways; both become one node that reads bytes, sums in integers
// and scales its results:
//   DequantizeLinear(a), DequantizeLinear(constant) -> MatMul, Gemm, Conv
//   MatMulInteger -> Cast -> Mul by the scales
// The node then absorbs the bias, Relu or Clip, and the QuantizeLinear that follow. In the first form, sums become
// exact where the float product rounds; everything else keeps its bits.
#include <unordered_set>

#include "base/in_pieces.h"
#include "kernels/byte_filters.h"
#include "op/node.h"
#include "op/registry.h"
#include "ops/costs.h"
#include "opt/bytes.h"
#include "opt/convolution.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/uses.h"

namespace treadle::opt {

namespace {

enum Input : size_t { kA, kB, kAZero, kBZero, kAScale, kBScale, kBias, kYScale, kYZero };

// --- dequantised operands

// Whether the bytes are constant weights of `rank` axes with one scale, or with one for each position along `axis`.
bool are_weights(const Bytes& bytes, size_t rank, int64_t axis) {
  if (!bytes.x->is_constant() || bytes.x->constant.dims().size() != rank) return false;
  if (has_one_scale(bytes)) return true;
  const int64_t along = bytes.axis < 0 ? bytes.axis + static_cast<int64_t>(rank) : bytes.axis;
  const int64_t count = bytes.x->constant.dims()[static_cast<size_t>(axis)];
  const auto is_list = [&](const Tensor& t) { return t.dims().size() == 1 && t.element_count() == count; };
  return along == axis && is_list(bytes.scale->constant) && (!bytes.zero || is_list(bytes.zero->constant));
}

// Sums of more products may exceed 32 bits.
constexpr int64_t kMostProducts = int64_t{1} << 15;

ir::Value* transposed(ir::Graph& graph, const ir::Value& matrix) {
  const Dims& dims = matrix.constant.dims();
  auto made = Tensor::allocate(matrix.constant.type(), {dims[1], dims[0]});
  if (!made.ok()) return nullptr;
  const auto* from = static_cast<const uint8_t*>(matrix.constant.raw());
  auto* to = static_cast<uint8_t*>(made->mutable_raw());
  StopPoll stop;
  for (int64_t i = 0; i < dims[0]; ++i) {
    const bool goes_on = in_pieces(dims[1], costs::kTurnedByteNs, stop, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) to[j * dims[0] + i] = from[i * dims[1] + j];
    });
    if (!goes_on) return nullptr;
  }
  return graph.new_constant(matrix.name, *made);
}

// Whether `bias` is a list of `count` floats after constants are folded.
bool is_bias(const ir::Value* bias, int64_t count) {
  const ir::Node* made = bias->producer;
  if (is(made, "DequantizeLinear")) bias = made->inputs[0];
  return bias->is_constant() && bias->constant.dims().size() == 1 && bias->constant.dims()[0] == count &&
         (made || bias->constant.type() == ElementType::kFloat);
}

bool is_plain(const ir::Node& gemm) {
  return gemm.attributes.get_float("alpha", 1) == 1.0f && gemm.attributes.get_float("beta", 1) == 1.0f &&
         gemm.attributes.get_int("transA") == 0;
}

bool sum_product(ir::Graph& graph, ir::Node& node) {
  const bool is_gemm = is(node, "Gemm");
  if (!(is(node, "MatMul") || (is_gemm && is_plain(node)))) return false;
  const bool transposed_matrix = is_gemm && node.attributes.get_int("transB") != 0;
  Bytes a, b;
  if (!dequantized(node.inputs[0], a) || !has_one_scale(a) || !dequantized(node.inputs[1], b)) return false;
  if (!are_weights(b, 2, transposed_matrix ? 0 : 1)) return false;
  const Dims& dims = b.x->constant.dims();
  if (dims[transposed_matrix ? 1 : 0] > kMostProducts) return false;
  ir::Value* bias = is_gemm ? input(node, 2) : nullptr;
  if (bias && !is_bias(bias, dims[transposed_matrix ? 0 : 1])) return false;
  ir::Value* weights = transposed_matrix ? transposed(graph, *b.x) : b.x;
  if (!weights) return false;
  become(node, require_op(kScaledProduct, "treadle"));
  set_inputs(node, {a.x, weights, a.zero, b.zero, a.scale, b.scale, bias});
  return true;
}

bool sum_convolution(ir::Node& node) {
  if (!is(node, "Conv")) return false;
  Bytes x, w;
  if (!dequantized(node.inputs[0], x) || !has_one_scale(x) || !dequantized(node.inputs[1], w)) return false;
  if (!w.x->is_constant() || !are_weights(w, w.x->constant.dims().size(), 0)) return false;
  const Dims& dims = w.x->constant.dims();
  if (dims.size() < 3 || dims[0] == 0) return false;
  const int64_t groups = std::max<int64_t>(node.attributes.get_int("group", 1), 1);
  const int64_t filters = dims[0] / groups, products = w.x->constant.element_count() / dims[0];
  if (products > kMostProducts) return false;
  if (filters < kernels::kFewestByteFilters && !kernels::sums_fit_floats(groups, filters, products)) return false;
  ir::Value* bias = input(node, 2);
  if (bias && !is_bias(bias, dims[0])) return false;
  become(node, require_op(kScaledConvolution, "treadle"), node.attributes);
  set_inputs(node, {x.x, w.x, x.zero, w.zero, x.scale, w.scale, bias});
  return true;
}

// --- the nodes that follow

// The node that makes `v` for `user` alone.
ir::Node* sole_producer(const ir::Node& user, const ir::Value* v, const Uses& uses) {
  ir::Node* node = v ? v->producer : nullptr;
  return node && node->parent == user.parent && uses.once(v) ? node : nullptr;
}

bool is_single(const ir::Value& v) {
  return v.type.has_shape && element_count(v.type.shape).is_known(1);
}

// Whether `v` has one element for each position along the last axis of `product`.
bool is_list_of_columns(const ir::Value& v, const ir::Value& product) {
  return v.type.has_shape && v.type.shape.size() == 1 && product.type.has_shape && !product.type.shape.empty() &&
         same(v.type.shape[0], product.type.shape.back());
}

ir::Value* one(ir::Graph& graph, const ir::Value& beside) {
  return graph.new_constant(beside.name + ":one", Tensor::scalar<float>(ElementType::kFloat, 1.0f));
}

// Mul(Cast(MatMulInteger), scale).
bool take_scale(ir::Graph& graph, ir::Node& mul, const Uses& uses) {
  if (!is(mul, "Mul") || mul.outputs[0]->type.element != ElementType::kFloat) return false;
  for (size_t i = 0; i < 2; ++i) {
    const ir::Node* cast = sole_producer(mul, mul.inputs[i], uses);
    if (!is(cast, "Cast")) continue;
    const ir::Node* product = sole_producer(*cast, cast->inputs[0], uses);
    ir::Value* scale = mul.inputs[1 - i];
    if (!is(product, "MatMulInteger") || !same(cast->outputs[0]->type.shape, mul.outputs[0]->type.shape)) continue;
    const ir::Value* b = product->inputs[1];
    const bool single = is_single(*scale);
    const bool per_column =
        b->type.has_shape && b->type.shape.size() > 1 && is_list_of_columns(*scale, *mul.outputs[0]);
    if (!single && !per_column) continue;
    ir::Value* unit = one(graph, *scale);
    std::vector<ir::Value*> inputs{product->inputs[0], product->inputs[1],    input(*product, 2),
                                   input(*product, 3), single ? scale : unit, single ? unit : scale};
    become(mul, require_op(kScaledProduct, "treadle"));
    set_inputs(mul, std::move(inputs));
    return true;
  }
  return false;
}

void become_product(ir::Node& node, const ir::Node& product, size_t behind, std::vector<ir::Value*> more) {
  std::vector<ir::Value*> inputs(product.inputs.begin(), product.inputs.end());
  inputs.resize(behind);
  inputs.insert(inputs.end(), more.begin(), more.end());
  become(node, *product.op, *product.version, product.attributes);
  set_inputs(node, std::move(inputs));
}

bool take_bias(ir::Node& add, const Uses& uses) {
  if (!is(add, "Add")) return false;
  for (size_t i = 0; i < 2; ++i) {
    const ir::Node* product = sole_producer(add, add.inputs[i], uses);
    ir::Value* bias = add.inputs[1 - i];
    if (!product || !is(*product, kScaledProduct, "treadle") || input(*product, kBias) || input(*product, kYScale))
      continue;
    const ir::Value* b = product->inputs[kB];
    if (!b->type.has_shape || b->type.shape.size() < 2 || !is_list_of_columns(*bias, *product->outputs[0])) continue;
    if (!same(product->outputs[0]->type.shape, add.outputs[0]->type.shape)) continue;
    become_product(add, *product, kBias, {bias});
    return true;
  }
  return false;
}

bool take_quantization(ir::Node& node, const Uses& uses) {
  if (!is(node, "QuantizeLinear") || !is_byte(node.outputs[0]->type.element)) return false;
  ir::Value *scale = node.inputs[1], *zero = input(node, 2);
  if (!zero || !is_single(*scale) || !is_single(*zero) || scale->type.element != ElementType::kFloat) return false;
  if (node.attributes.get_int("precision") > static_cast<int64_t>(ElementType::kFloat)) return false;
  const ir::Node* product = sole_producer(node, node.inputs[0], uses);
  if (!product || !(is(*product, kScaledProduct, "treadle") || is(*product, kScaledConvolution, "treadle")))
    return false;
  if (input(*product, kYScale)) return false;
  become_product(node, *product, kYScale, {scale, zero});
  return true;
}

bool is_clamped(const ir::Node& conv) {
  return conv.attributes.has("low") || conv.attributes.has("high");
}

// Absorbs a Relu or Clip of a convolution's result.
bool take_clamp(ir::Node& node, const Uses& uses) {
  const auto bounds = clamp_of(node);
  const ir::Node* conv = bounds ? sole_producer(node, node.inputs[0], uses) : nullptr;
  if (!conv || !is(*conv, kScaledConvolution, "treadle") || input(*conv, kYScale) || is_clamped(*conv)) return false;
  become_product(node, *conv, conv->inputs.size(), {});
  node.attributes.set(ir::Attribute::of("low", bounds->low));
  node.attributes.set(ir::Attribute::of("high", bounds->high));
  return true;
}

}  // namespace

void sum_in_integers(ir::Graph& graph, Remarks* remarks) {
  std::unordered_set<const ir::Node*> passed;  // DequantizeLinears of products that now read bytes
  ir::for_each_node(graph.top(), [&](ir::Node& node) {
    if (!is_any(&node, {"MatMul", "Gemm", "Conv"})) return;
    const ir::Node* sources[] = {node.inputs[0]->producer, node.inputs[1]->producer};
    if (!sum_product(graph, node) && !sum_convolution(node)) return;
    passed.insert(std::begin(sources), std::end(sources));
    note(remarks, Change::kRestated, *node.parent, node, "a product of integers");
  });
  if (passed.empty()) return;
  const auto read = values_read(graph.top());
  erase_nodes(graph.top(), [&](const ir::Region&, const ir::Node& node) {
    return passed.contains(&node) && !read.contains(node.outputs[0]);
  });
}

void fuse_integer_products(ir::Graph& graph, Remarks* remarks) {
  const auto fusible = [](const ir::Node& node) {
    return is(node, "MatMulInteger") || is(node, kScaledProduct, "treadle") || is(node, kScaledConvolution, "treadle");
  };
  if (!has_node(graph.top(), fusible)) return;
  const Uses uses(graph.top());
  ir::for_each_node(graph.top(), [&](ir::Node& node) {
    if (node.outputs.size() != 1 || !node.outputs[0]) return;
    const ir::Node* loop = remarks ? loop_around(*node.parent) : nullptr;
    Remark entry{Change::kFused, {}, {}, node.op->name};
    if (loop) entry.node = node.name;
    if (!take_scale(graph, node, uses) && !take_bias(node, uses) && !take_clamp(node, uses) &&
        !take_quantization(node, uses)) {
      return;
    }
    if (!loop) return;
    entry.loop = loop->name;
    entry.into = kScaledProduct;
    remarks->add(std::move(entry));
  });
}

}  // namespace treadle::opt
