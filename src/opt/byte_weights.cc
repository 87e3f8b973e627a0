// Weights that a model stores as bytes and dequantises for products stay bytes. That takes a quarter of the memory, and
// a row times a large matrix reads a quarter of the bytes.
//
//   Concat(Unsqueeze(Transpose(DequantizeLinear(constant))), ...) -> LSTM        when a model is loaded becomes
//   DequantizedWeights(constant) -> LSTM                                         and, once LSTM is products,
//   DequantizedProduct(x, part of the constant)
//
// The bytes are moved as the model moves the floats, before any float is made. Weights that no product can read as
// bytes become constant floats.
#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "op/axes.h"
#include "op/gemm.h"
#include "op/node.h"
#include "op/registry.h"
#include "opt/bytes.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/uses.h"
#include "type/make_tensor.h"

namespace treadle::opt {

namespace {

constexpr const char* kWeights = "DequantizedWeights";
// Fewer weights are small as floats too, and native code inlines products with them: 128 x 128 take 530 ns as floats
// and 650 as bytes. At 512 x 512 bytes take 0.88 of the time of floats, at 1024 x 1024 0.64 (measured, a row in a
// loop).
constexpr int64_t kFewestWeights = int64_t{1} << 15;

// Scales and zero points have the same number of axes as the bytes; an axis has size 1 if all positions along it share
// one value.
struct Weights {
  Tensor bytes, scale, zero;  // `zero` may be undefined

  std::vector<Tensor*> parts() {
    return zero.defined() ? std::vector{&bytes, &scale, &zero} : std::vector{&bytes, &scale};
  }
};

// `list`, which has one element or one for each position along `axis`, as a tensor of `rank` axes.
Tensor spread(const Tensor& list, size_t rank, size_t axis) {
  Dims dims(rank, 1);
  if (list.element_count() != 1) dims[axis] = list.element_count();
  return list.reshaped(std::move(dims));
}

// Finds the bytes behind values that are dequantised constants after moves.
class Tracer {
 public:
  explicit Tracer(const reference::FoldLimits& limits) : folding_(limits) {}

  // The bytes, scales and zero points of `v`; null if `v` is not made of such bytes.
  const Weights* find(const ir::Value* v) {
    if (!v || !v->producer) return nullptr;
    if (const auto known = found_.find(v); known != found_.end()) return known->second ? &*known->second : nullptr;
    std::optional<Weights> made = trace(*v->producer);
    if (made) nodes_.insert(v->producer);
    const auto& kept = found_.emplace(v, std::move(made)).first->second;
    return kept ? &*kept : nullptr;
  }

  // Whether `node` makes weights that were found, or a part of them.
  bool has_read(const ir::Node* node) const { return nodes_.contains(node); }

 private:
  std::optional<Weights> trace(const ir::Node& node) {
    if (node.outputs.size() != 1) return std::nullopt;
    if (is(node, "DequantizeLinear") || is(node, kWeights, "treadle")) return of_dequantized(node);
    if (is(node, "Concat")) return joined(node);
    if (!is_any(&node, {"Transpose", "Unsqueeze", "Squeeze", "Gather", "Slice"})) return std::nullopt;
    const Weights* from = find(node.inputs[0]);
    if (!from) return std::nullopt;
    if (is(node, "Gather")) return picked(node, *from);
    if (is(node, "Slice")) return cut(node, *from);
    if (is(node, "Squeeze") && constant_axes(node, 1).value_or(std::vector<int64_t>{}).empty()) return std::nullopt;
    return moved(node, *from);
  }

  static std::optional<Weights> of_dequantized(const ir::Node& node) {
    Bytes bytes;
    if (!dequantized(node.outputs[0], bytes) || !bytes.x->is_constant()) return std::nullopt;
    const Tensor& x = bytes.x->constant;
    const auto rank = static_cast<size_t>(x.rank());
    const int64_t axis = bytes.axis < 0 ? bytes.axis + x.rank() : bytes.axis;
    const auto fits = [&](const Tensor& t) {
      if (t.element_count() == 1) return true;
      return t.rank() == 1 && axis >= 0 && axis < x.rank() && t.element_count() == x.dims()[static_cast<size_t>(axis)];
    };
    if (rank == 0 || !fits(bytes.scale->constant) || (bytes.zero && !fits(bytes.zero->constant))) return std::nullopt;
    Weights made{x, spread(bytes.scale->constant, rank, static_cast<size_t>(axis)), {}};
    if (bytes.zero) made.zero = spread(bytes.zero->constant, rank, static_cast<size_t>(axis));
    return made;
  }

  // The node's result for these inputs.
  std::optional<Tensor> evaluate(const ir::Node& node, std::vector<AnyValue> inputs) {
    auto results = folding_.evaluate(node, inputs);
    if (!results || results->size() != 1 || !(*results)[0].is_tensor()) return std::nullopt;
    return (*results)[0].tensor();
  }

  std::optional<Weights> moved(const ir::Node& node, const Weights& from) {
    std::vector<AnyValue> inputs{AnyValue()};
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (node.inputs[i] && !node.inputs[i]->is_constant()) return std::nullopt;
      inputs.push_back(node.inputs[i] ? AnyValue(node.inputs[i]->constant) : AnyValue());
    }
    Weights made = from;
    for (Tensor* part : made.parts()) {
      inputs[0] = AnyValue(*part);
      const auto result = evaluate(node, inputs);
      if (!result) return std::nullopt;
      *part = *result;
    }
    return made;
  }

  static std::optional<Weights> picked(const ir::Node& node, const Weights& from) {
    const ir::Value* index = node.inputs[1];
    if (!index->is_constant() || index->constant.rank() != 0 || node.attributes.get_int("axis") != 0) {
      return std::nullopt;
    }
    const int64_t size = from.bytes.dims()[0], given = index->constant.int64_at(0);
    const int64_t at = given < 0 ? given + size : given;
    if (at < 0 || at >= size) return std::nullopt;
    return parts_from(from, at, at + 1, false);
  }

  static std::optional<Weights> cut(const ir::Node& node, const Weights& from) {
    const auto starts = constant_ints(node, 1), ends = constant_ints(node, 2), axes = constant_ints(node, 3);
    const auto steps = constant_ints(node, 4);
    const bool steps_by_one =
        !input(node, 4) || (steps && std::all_of(steps->begin(), steps->end(), [](int64_t step) { return step == 1; }));
    if (!starts || !ends || !axes || !steps_by_one || *axes != std::vector<int64_t>{0}) return std::nullopt;
    const int64_t size = from.bytes.dims()[0], begin = (*starts)[0], end = std::min((*ends)[0], size);
    if (begin < 0 || begin >= end) return std::nullopt;
    return parts_from(from, begin, end, true);
  }

  static Weights parts_from(const Weights& from, int64_t begin, int64_t end, bool keeps_axis) {
    Weights made = from;
    for (Tensor* part : made.parts()) {
      const bool is_shared = part != &made.bytes && part->dims()[0] == 1;
      *part = part_of(*part, is_shared ? 0 : begin, is_shared ? 1 : end, keeps_axis);
    }
    return made;
  }

  // If the scales of parts differ, each is repeated for the positions of its part along the axis.
  std::optional<Weights> joined(const ir::Node& node) {
    std::vector<const Weights*> parts;
    for (const ir::Value* v : node.inputs) {
      parts.push_back(find(v));
      if (!parts.back()) return std::nullopt;
    }
    const Weights& first = *parts[0];
    const int64_t rank = first.bytes.rank();
    const auto given = normalize_axis(node.attributes.get_int("axis"), rank);
    if (!given.ok()) return std::nullopt;
    const int64_t axis = *given;
    bool same_scales = true;
    for (const Weights* part : parts) {
      if (part->bytes.rank() != rank || part->bytes.type() != first.bytes.type()) return std::nullopt;
      if (part->zero.defined() != first.zero.defined()) return std::nullopt;
      same_scales &= identical(part->scale, first.scale) &&
                     (!first.zero.defined() || identical(part->zero, first.zero)) &&
                     part->scale.dims()[static_cast<size_t>(axis)] == 1;
    }
    const auto join = [&](Tensor Weights::* member, bool repeats) {
      std::vector<AnyValue> tensors;
      for (const Weights* part : parts) {
        const int64_t size = part->bytes.dims()[static_cast<size_t>(axis)];
        tensors.emplace_back(repeats ? repeated(part->*member, static_cast<size_t>(axis), size) : part->*member);
      }
      return evaluate(node, std::move(tensors));
    };
    auto bytes = join(&Weights::bytes, false);
    if (!bytes) return std::nullopt;
    if (same_scales) return Weights{*bytes, first.scale, first.zero};
    auto scale = join(&Weights::scale, true);
    std::optional<Tensor> zero = first.zero.defined() ? join(&Weights::zero, true) : Tensor();
    if (!scale || !zero) return std::nullopt;
    return Weights{*bytes, *scale, *zero};
  }

  // Repeats a tensor of one position along `axis` `count` times. Only for scales and zero points, which are small.
  static Tensor repeated(const Tensor& one, size_t axis, int64_t count) {
    if (one.dims()[axis] == count) return one;
    Dims dims = one.dims();
    dims[axis] = count;
    Tensor made = make_tensor(one.type(), dims);
    const size_t inner = byte_width(one.type()) *
                         static_cast<size_t>(std::accumulate(dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1,
                                                             dims.end(), int64_t{1}, std::multiplies<>()));
    const size_t outer = one.byte_size() / inner;
    auto* to = static_cast<std::byte*>(made.mutable_raw());
    for (size_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < count; ++i, to += inner) {
        std::memcpy(to, static_cast<const std::byte*>(one.raw()) + o * inner, inner);
      }
    }
    return made;
  }

  reference::Folding folding_;
  std::unordered_map<const ir::Value*, std::optional<Weights>> found_;
  std::unordered_set<const ir::Node*> nodes_;
};

// The one axis along which scales or zero points differ; -1 if they do not; nullopt if there are several axes.
std::optional<int64_t> scaled_axis(const Weights& weights) {
  int64_t axis = -1;
  for (const Tensor* t : {&weights.scale, &weights.zero}) {
    for (int64_t i = 0; t->defined() && i < t->rank(); ++i) {
      if (t->dims()[static_cast<size_t>(i)] == 1 || i == axis) continue;
      if (axis >= 0) return std::nullopt;
      axis = i;
    }
  }
  return axis;
}

Tensor as_list(const Tensor& t) {
  return t.reshaped(t.element_count() == 1 ? Dims{} : Dims{t.element_count()});
}

// --- when a model is loaded

bool is_weights_of(const ir::Node& node, size_t i) {
  if (is_any(&node, {"RNN", "LSTM", "GRU"})) return i == 1 || i == 2;
  return i == 1 && (is(node, "MatMul") || (is(node, "Gemm") && node.attributes.get_int("transA") == 0));
}

// Turns `node`, which made the weights, into a DequantizedWeights of the bytes.
bool keep_bytes(ir::Graph& graph, ir::Node& node, const Weights& weights) {
  const auto axis = scaled_axis(weights);
  if (!axis || weights.bytes.element_count() < kFewestWeights) return false;
  // If zero points are a list, scales must be a list too.
  if (weights.zero.defined() && weights.zero.element_count() != weights.scale.element_count() &&
      weights.zero.element_count() != 1) {
    return false;
  }
  const std::string& name = node.outputs[0]->name;
  std::vector<ir::Value*> inputs{graph.new_constant(name + ":bytes", weights.bytes),
                                 graph.new_constant(name + ":scale", as_list(weights.scale))};
  if (weights.zero.defined()) inputs.push_back(graph.new_constant(name + ":zero", as_list(weights.zero)));
  become(node, require_op(kWeights, "treadle"));
  node.attributes.set(ir::Attribute::of("axis", std::max<int64_t>(*axis, 0)));
  set_inputs(node, std::move(inputs));
  return true;
}

// Values whose only readers use them as weights of products.
std::vector<ir::Value*> weights_of_products(const ir::Graph& graph) {
  std::vector<ir::Value*> weights;
  ValueSet others;
  for (const ir::Value* v : graph.top().outputs) others.insert(v);
  ir::for_each_node(graph.top(), [&](const ir::Node& node) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      ir::Value* v = node.inputs[i];
      if (!v || !v->producer) continue;
      if (is_weights_of(node, i)) {
        if (std::find(weights.begin(), weights.end(), v) == weights.end()) weights.push_back(v);
      } else {
        others.insert(v);
      }
    }
    for (const auto& body : node.regions) {
      for (const ir::Value* v : body->outputs) others.insert(v);
    }
  });
  std::erase_if(weights, [&](const ir::Value* v) { return others.contains(v); });
  return weights;
}

// --- when a run is planned

// Turns the product into a product by bytes. The matrix has one scale for each column, or one scale.
bool read_bytes(ir::Graph& graph, ir::Node& node, Tracer& tracer) {
  const bool is_gemm = is(node, "Gemm");
  if (!is_gemm && !is(node, "MatMul")) return false;
  const Type& rows = node.inputs[0]->type;
  if (node.attributes.has(kHalfWeights) || !rows.has_shape || rows.rank() < 2) return false;
  if (is_gemm && node.attributes.get_int("transA") != 0) return false;
  const Weights* weights = tracer.find(node.inputs[1]);
  if (!weights || weights->bytes.rank() != 2) return false;
  const bool transposed = is_gemm && node.attributes.get_int("transB") != 0;
  const auto axis = scaled_axis(*weights);
  if (!axis || (*axis >= 0 && *axis != (transposed ? 0 : 1))) return false;
  const std::string& name = node.inputs[1]->name;
  ir::Value* zero = weights->zero.defined() ? graph.new_constant(name + ":zero", as_list(weights->zero)) : nullptr;
  std::vector<ir::Value*> inputs{node.inputs[0], graph.new_constant(name, weights->bytes), input(node, 2),
                                 graph.new_constant(name + ":scale", as_list(weights->scale)), zero};
  become(node, require_op("DequantizedProduct", "treadle"), node.attributes);
  set_inputs(node, std::move(inputs));
  return true;
}

}  // namespace

void keep_byte_weights(ir::Graph& graph, Remarks* remarks, const reference::FoldLimits& limits) {
  Tracer tracer(limits);
  bool kept = false;
  for (ir::Value* v : weights_of_products(graph)) {
    const Weights* weights = tracer.find(v);
    if (!weights || !keep_bytes(graph, *v->producer, *weights)) continue;
    note(remarks, Change::kRestated, *v->producer->parent, *v->producer, "weights that stay bytes");
    kept = true;
  }
  // Removes the nodes that made the weights, from the last to the first.
  for (bool gone = kept; gone;) {
    gone = false;
    const auto read = values_read(graph.top());
    erase_nodes(graph.top(), [&](const ir::Region&, const ir::Node& node) {
      const bool goes = tracer.has_read(&node) && !read.contains(node.outputs[0]);
      gone |= goes;
      return goes;
    });
  }
}

void read_byte_weights(ir::Graph& graph, Remarks* remarks, const reference::FoldLimits& limits) {
  const auto is_kept = [](const ir::Node& node) { return is(node, kWeights, "treadle"); };
  if (!has_node(graph.top(), is_kept)) return;
  Tracer tracer(limits);
  ir::for_each_node(graph.top(), [&](ir::Node& node) { read_bytes(graph, node, tracer); });
  remove_dead_nodes(graph, remarks);
  if (!has_node(graph.top(), is_kept)) return;
  ir::for_each_node(graph.top(), [&](ir::Node& node) {
    if (is_kept(node)) become(node, require_op("DequantizeLinear"), node.attributes);
  });
  fold_constants(graph, remarks, limits);
}

}  // namespace treadle::opt
