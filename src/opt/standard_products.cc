// Rewrites of products, convolutions and pools that absorb the nodes around them.
#include <optional>

#include "op/node.h"
#include "op/registry.h"
#include "opt/bytes.h"
#include "opt/match.h"
#include "opt/standard_site.h"

namespace treadle::opt {

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

// The number of elements that a Pad adds on every side, if it adds zeros and the numbers are constant.
std::optional<std::vector<int64_t>> zeros_of(const ir::Node& pad) {
  if (pad.attributes.get_string("mode", "constant") != "constant" || input(pad, 3)) return {};
  if (pad.version->since >= 11) return is_zero(input(pad, 2)) ? int64s_of(input(pad, 1)) : std::nullopt;
  if (pad.attributes.get_float("value", 0) != 0) return {};
  const auto pads = pad.attributes.get_ints("pads");
  return std::vector<int64_t>(pads.begin(), pads.end());
}

// The padding of `node`, whose operand `pad` makes, plus the padding of `pad`; empty if they cannot be combined.
std::vector<int64_t> joined_padding(const ir::Node& node, const ir::Node& pad) {
  const auto around = zeros_of(pad);
  if (!around || around->size() < 6 || node.attributes.get_string("auto_pad", "NOTSET") != "NOTSET") return {};
  const size_t rank = around->size() / 2, axes = rank - 2;
  std::vector<int64_t> pads(2 * axes);
  const auto own = node.attributes.get_ints("pads");
  if (!own.empty() && own.size() != pads.size()) return {};
  for (size_t i = 0; i < around->size(); ++i) {
    const size_t axis = i % rank;
    if (axis < 2 ? (*around)[i] != 0 : (*around)[i] < 0) return {};
    if (axis < 2) continue;
    const size_t at = i / rank * axes + axis - 2;
    pads[at] = (*around)[i] + (own.empty() ? 0 : own[at]);
  }
  return pads;
}

// Whether Gemm can add `v` to a result of these sizes: it is a row, a column or a matrix of them.
bool is_addend(const ir::Value* v, const Dim& rows, const Dim& columns) {
  if (!v || !v->type.has_shape) return false;
  const Shape& shape = v->type.shape;
  if (shape.size() == 1) return same(shape[0], columns);
  if (shape.size() != 2) return false;
  const bool spans_rows = same(shape[0], rows), spans_columns = same(shape[1], columns);
  return (spans_columns && (spans_rows || shape[0].is_known(1))) || (spans_rows && shape[1].is_known(1));
}

// Products of float64 stay as they are: onnxruntime's tools know Gemm for narrower floats only.
bool is_narrow_float(const ir::Value* v) {
  return v && is_float(v->type.element) && byte_width(v->type.element) <= 4;
}

// --- attention, whose MatMul and Add other programs fuse as a whole

// Whether `v` is the value that attention passes to its last product: Softmax, MatMul, Transpose, Reshape.
bool is_attended(const ir::Value* v) {
  const ir::Node* node = v->producer;
  for (const char* op : {"Reshape", "Transpose", "MatMul"}) {
    if (!is(node, op)) return false;
    node = node->inputs[0]->producer;
  }
  return is(node, "Softmax");
}

// --- products with more axes than two

Type matrix(ElementType element, int64_t rows, int64_t columns) {
  return Type::tensor(element, {rows, columns});
}

// The operands of MatMul as two matrices, if all sizes are known and none is 0.
struct Sizes {
  int64_t rows = 1, depth = 0, columns = 0;
};
std::optional<Sizes> sizes_as_matrices(const ir::Value* a, const ir::Value* b) {
  if (!a->type.is_concrete() || !b->type.is_concrete() || !is_matrix(b) || a->type.shape.empty()) return {};
  Sizes sizes;
  for (size_t i = 0; i + 1 < a->type.shape.size(); ++i) sizes.rows *= a->type.shape[i].value();
  sizes.depth = b->type.shape[0].value();
  sizes.columns = b->type.shape[1].value();
  return sizes.rows > 0 && sizes.depth > 0 && sizes.columns > 0 ? std::optional(sizes) : std::nullopt;
}

bool adds_to_rows(Site& site, const ir::Node& product, ir::Value* c) {
  ir::Value *const a = product.inputs[0], *const b = product.inputs[1];
  const auto sizes = sizes_as_matrices(a, b);
  if (!sizes || is_attended(a) || site.facts().attention_inputs.contains(a)) return false;
  if (site.facts().attention_results.contains(site.node().outputs[0])) return false;
  if (!c->type.has_shape || c->type.shape.size() != 1 || !c->type.shape[0].is_known(sizes->columns)) return false;
  const ElementType element = a->type.element;
  ir::Value* const sizes_of_rows = site.constant(Tensor::of_int64({{sizes->rows, sizes->depth}}), "row_sizes");
  ir::Value* const rows =
      site.before("Reshape", {a, sizes_of_rows}, matrix(element, sizes->rows, sizes->depth), "rows");
  ir::Value* const made = site.before("Gemm", {rows, b, c}, matrix(element, sizes->rows, sizes->columns), "product");
  const Dims dims = known_dims(site.node().outputs[0]->type.shape);
  site.put("Reshape", {made, site.constant(Tensor::of_int64(dims), "sizes")});
  return true;
}

}  // namespace

bool adds_to_product(Site& site) {
  ir::Node& add = site.node();
  const OpVersion* const version = site.version_of("Gemm");
  if (!version || version->since < 7 || !is_narrow_float(add.outputs[0]))
    return false;  // Gemm 6 broadcasts by an attribute
  for (size_t i = 0; i < 2; ++i) {
    const ir::Node* const product = site.sole_producer(i, {"MatMul"});
    if (!product) continue;
    ir::Value *const a = product->inputs[0], *const b = product->inputs[1], *const c = add.inputs[1 - i];
    if (!a->type.has_shape || !b->type.has_shape) continue;
    if (is_matrix(a) && is_matrix(b) && is_addend(c, a->type.shape[0], b->type.shape[1])) {
      const ir::Name name = product->name;
      site.put("Gemm", {a, b, c});
      add.name = name;
      return true;
    }
    if (!is_matrix(a) && add.outputs[0]->type.is_concrete() && adds_to_rows(site, *product, c)) {
      return true;
    }
  }
  return false;
}

bool sums_with_product(Site& site) {
  ir::Node& sum = site.node();
  if (sum.inputs.size() != 2) return false;
  for (size_t i = 0; i < 2; ++i) {
    const ir::Node* const product = site.sole_producer(i, {"Gemm"});
    if (!product || product->version->since < 11 || input(*product, 2)) continue;
    const Type& type = product->outputs[0]->type;
    ir::Value* const c = sum.inputs[1 - i];
    if (!type.has_shape || type.shape.size() != 2 || !is_addend(c, type.shape[0], type.shape[1])) continue;
    const ir::Name name = product->name;
    site.put("Gemm", {product->inputs[0], product->inputs[1], c}, product->attributes);
    sum.attributes.set(ir::Attribute::of("beta", 1.0f));
    sum.name = name;
    return true;
  }
  return false;
}

namespace {

bool swaps_axes(const ir::Node* transpose) {
  if (!transpose || !is(*transpose, "Transpose") || !is_matrix(transpose->inputs[0])) return false;
  const auto perm = transpose->attributes.get_ints("perm");
  return perm.empty() || (perm.size() == 2 && perm[0] == 1 && perm[1] == 0);
}

int64_t other(int64_t flag) {
  return flag == 0 ? 1 : 0;
}

}  // namespace

bool transposes_product(Site& site) {
  ir::Node& transpose = site.node();
  const ir::Node* const product = site.sole_producer(0, {"Gemm"});
  if (!product || product->version->since < 11 || input(*product, 2) || !swaps_axes(&transpose)) return false;
  const int64_t transposes_a = product->attributes.get_int("transA"),
                transposes_b = product->attributes.get_int("transB");
  const ir::Name name = product->name;
  site.put("Gemm", {product->inputs[1], product->inputs[0]}, product->attributes);
  transpose.attributes.set(ir::Attribute::of("transA", other(transposes_b)));
  transpose.attributes.set(ir::Attribute::of("transB", other(transposes_a)));
  transpose.name = name;
  return true;
}

bool reads_transposed(Site& site) {
  ir::Node& gemm = site.node();
  bool changed = false;
  for (const auto& [operand, attribute] : {std::pair<size_t, const char*>{0, "transA"}, {1, "transB"}}) {
    const ir::Node* const transpose = gemm.inputs[operand] ? gemm.inputs[operand]->producer : nullptr;
    if (!swaps_axes(transpose)) continue;
    gemm.inputs[operand] = transpose->inputs[0];
    gemm.attributes.set(ir::Attribute::of(attribute, other(gemm.attributes.get_int(attribute))));
    changed = true;
  }
  return changed;
}

bool pads_convolution(Site& site) {
  ir::Node& conv = site.node();
  const ir::Node* const pad = site.sole_producer(0, {"Pad"});
  std::vector<int64_t> pads = pad ? joined_padding(conv, *pad) : std::vector<int64_t>();
  if (pads.empty()) return false;
  conv.attributes.set(ir::Attribute::of("pads", std::move(pads)));
  conv.inputs[0] = pad->inputs[0];
  return true;
}

bool pads_average(Site& site) {
  ir::Node& pool = site.node();
  const ir::Node* const pad = site.sole_producer(0, {"Pad"});
  // With ceil_mode the last window may reach beyond the padding, and the pool does not count elements there.
  if (!pad || pool.version->since < 7 || pool.attributes.get_int("ceil_mode") != 0) return false;
  for (const int64_t own : pool.attributes.get_ints("pads")) {
    if (own != 0) return false;  // whether the pool counts its own padding depends on count_include_pad
  }
  std::vector<int64_t> pads = joined_padding(pool, *pad);
  const auto kernel = pool.attributes.get_ints("kernel_shape");
  for (size_t i = 0; i < pads.size(); ++i) {
    if (kernel.size() * 2 != pads.size() || pads[i] >= kernel[i % kernel.size()]) return false;
  }
  if (pads.empty()) return false;
  pool.attributes.set(ir::Attribute::of("pads", std::move(pads)));
  pool.attributes.set(ir::Attribute::of("count_include_pad", 1));
  pool.inputs[0] = pad->inputs[0];
  return true;
}

namespace {

// Inputs of products that sum in integers (opt/integer_products.cc).
enum Product : size_t { kA, kB, kAZero, kBZero, kAScale, kBScale, kBias };

ir::Value* dequantized_before(Site& site, size_t bytes, size_t zero, size_t scale, int64_t axis,
                              std::string_view part) {
  const ir::Node& product = site.node();
  ir::Attributes attributes;
  if (!product.inputs[scale]->is_constant() || product.inputs[scale]->constant.element_count() != 1) {
    attributes.set(ir::Attribute::of("axis", axis));
  }
  Type type = product.inputs[bytes]->type;
  type.element = ElementType::kFloat;
  return site.before("DequantizeLinear", {product.inputs[bytes], product.inputs[scale], input(product, zero)}, type,
                     part, attributes);
}

}  // namespace

bool multiplies_floats(Site& site) {
  const ir::Node& product = site.node();
  const bool is_convolution = is(product, kScaledConvolution, "treadle");
  if (!is_convolution && !is(product, kScaledProduct, "treadle")) return false;
  ir::Value *const bias = input(product, kBias), *const scales = product.inputs[kBScale];
  const OpVersion* const version = site.version_of("DequantizeLinear");
  if (product.inputs.size() > kBias + 1 || !version || (version->since < 13 && !is_one(scales, ElementType::kFloat))) {
    return false;
  }
  const ir::Attributes given = product.attributes;
  ir::Value* const a = dequantized_before(site, kA, kAZero, kAScale, 1, "input");
  ir::Value* const b = dequantized_before(site, kB, kBZero, kBScale, is_convolution ? 0 : 1, "weights");
  const char* const op = is_convolution ? "Conv" : bias ? "Gemm" : "MatMul";
  site.put(op, {a, b}, is_convolution ? given : ir::Attributes());
  if (bias) site.graph().add_input(&site.node(), bias);
  return true;
}

}  // namespace treadle::opt
