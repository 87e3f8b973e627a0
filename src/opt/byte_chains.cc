// Nodes between DequantizeLinear and QuantizeLinear, with one scale each, compute on bytes instead of floats:
//
//   QuantizeLinear(f(DequantizeLinear(x)))                      ->  LookUpBytes, by 256 results of f computed here
//   QuantizeLinear(DequantizeLinear(a) + DequantizeLinear(b))   ->  QuantizedPairs, also of Sub and Mul,
//                                                                   with Relu or Clip behind
//   QuantizeLinear(Concat(DequantizeLinear(a), ...))            ->  Concat(QuantizeLinear(DequantizeLinear(a)), ...)
//
// The last rule holds for every node that moves elements, and for MaxPool, since rounding keeps the order. The
// QuantizeLinear in front of such a node then becomes a table, or goes if scales and zero points are the same.
#include <array>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "op/node.h"
#include "op/registry.h"
#include "opt/builder.h"
#include "opt/bytes.h"
#include "opt/convolution.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/uses.h"
#include "reference/folding.h"

namespace treadle::opt {

namespace {

// Limits scales so that no step between them leaves the range of floats.
bool is_moderate(const ir::Value& scale) {
  const float value = *static_cast<const float*>(scale.constant.raw());
  return value >= 0x1p-30f && value <= 0x1p30f;
}

bool is_moderate(const Bytes& bytes) {
  return has_one_scale(bytes) && is_moderate(*bytes.scale);
}

bool quantizes_to_bytes(const ir::Node& node) {
  if (!is(node, "QuantizeLinear") || node.outputs.size() != 1 || !node.outputs[0]) return false;
  const ElementType type = node.outputs[0]->type.element;
  const ir::Value* zero = input(node, 2);
  return is_byte(type) && node.inputs[0]->type.element == ElementType::kFloat &&
         is_one(node.inputs[1], ElementType::kFloat) && (!zero || is_one(zero, type)) &&
         node.attributes.get_int("block_size") == 0 &&
         node.attributes.get_int("precision") <= static_cast<int64_t>(ElementType::kFloat) &&
         is_moderate(*node.inputs[1]);
}

// The value of a function for all bytes, through nodes that compute each element by itself.
class ByteFunction {
 public:
  // The tensor of bytes whose elements alone decide the elements of `v`, which has its shape; null if there is none.
  const ir::Value* source(const ir::Value* v) {
    left_ = kMostNodes;
    const ir::Value* found = nullptr;
    return looks_at(v, found) && same_shape(*v, *found) ? found : nullptr;
  }

  // The results of `node`, whose input 0 is such a function of `x`, for all bytes; none if the nodes cannot be
  // evaluated.
  std::optional<Tensor> table(const ir::Node& node, const ir::Value* x) {
    values_.clear();
    values_[x] = all_bytes(x->type.element);
    const AnyValue* found = evaluate(node);
    if (!found || !found->is_tensor() || found->tensor().element_count() != kBytes) return std::nullopt;
    auto made = Tensor::allocate(found->tensor().type(), {kBytes});
    if (!made.ok()) return std::nullopt;
    std::memcpy(made->mutable_raw(), found->tensor().raw(), kBytes);
    return *made;
  }

 private:
  static constexpr int64_t kBytes = 256;
  static constexpr int kMostNodes = 32;

  static bool same_shape(const ir::Value& a, const ir::Value& b) {
    return a.type.has_shape && b.type.has_shape && same(a.type.shape, b.type.shape);
  }

  bool looks_at(const ir::Value* v, const ir::Value*& x) {
    if (!v || left_-- == 0) return false;
    if (v->is_constant()) return v->constant.element_count() == 1;
    Bytes bytes;
    if (dequantized(v, bytes)) {
      if (!has_one_scale(bytes) || bytes.x->type.element != bytes.type || (x && x != bytes.x)) return false;
      x = bytes.x;
      return true;
    }
    const ir::Node* node = v->producer;
    if (!node || !node->op->elementwise || node->outputs.size() != 1 || !node->regions.empty()) return false;
    if (node->op->effects != Effects::kTotal) return false;
    for (const ir::Value* argument : node->inputs) {
      if (argument && !looks_at(argument, x)) return false;
    }
    return x != nullptr;
  }

  static Tensor all_bytes(ElementType type) {
    auto bytes = Tensor::allocate(type, {kBytes});
    for (int64_t i = 0; bytes.ok() && i < kBytes; ++i) {
      static_cast<uint8_t*>(bytes->mutable_raw())[i] = static_cast<uint8_t>(i);
    }
    return bytes.ok() ? *bytes : Tensor();
  }

  const AnyValue* evaluate(const ir::Node& node) {
    std::vector<AnyValue> inputs;
    for (const ir::Value* v : node.inputs) {
      if (!v || v->is_constant()) {
        inputs.push_back(v ? AnyValue(v->constant) : AnyValue());
        continue;
      }
      const auto known = values_.find(v);
      const AnyValue* value = known != values_.end() ? &known->second : evaluate(*v->producer);
      if (!value) return nullptr;
      inputs.push_back(*value);
    }
    auto results = folding_.evaluate(node, inputs);
    if (!results || results->size() != 1) return nullptr;
    return &(values_[node.outputs[0]] = std::move((*results)[0]));
  }

  reference::Folding folding_;
  std::unordered_map<const ir::Value*, AnyValue> values_;
  int left_ = 0;
};

bool is_identity(const Tensor& table) {
  const auto* bytes = static_cast<const uint8_t*>(table.raw());
  for (int i = 0; i < 256; ++i) {
    if (bytes[i] != i) return false;
  }
  return true;
}

class ByteChains {
 public:
  ByteChains(ir::Graph& graph, Remarks* remarks) : graph_(graph), remarks_(remarks), uses_(graph.top()) {}

  void run() {
    visit_nodes(graph_.top(), [this](ir::Region& region, size_t at) { return visit(region, at); });
  }

 private:
  // Returns a position that lets the walk visit the QuantizeLinears which it put in front of the node.
  size_t visit(ir::Region& region, size_t at) {
    ir::Node& node = *region.nodes[at];
    if (!quantizes_to_bytes(node)) return at;
    if (look_up(node)) return at;
    if (pair(node)) return at;
    return swap_with_move(region, at) ? at - 1 : at;
  }

  bool look_up(ir::Node& node) {
    const ir::Value* x = function_.source(node.inputs[0]);
    if (!x) return false;
    std::optional<Tensor> table = function_.table(node, x);
    if (!table) return false;
    auto* bytes = const_cast<ir::Value*>(x);
    if (x->type.element == table->type() && is_identity(*table)) {
      note(remarks_, Change::kElided, *node.parent, node);
      become(node, require_op("Identity"));
      set_inputs(node, {bytes});
    } else {
      note(remarks_, Change::kRestated, *node.parent, node, "a table of bytes");
      ir::Value* constant = graph_.new_constant(node.name, *std::move(table));
      become(node, require_op("LookUpBytes", "treadle"));
      set_inputs(node, {bytes, constant});
    }
    return true;
  }

  // The node that makes `v` for `user` alone.
  const ir::Node* sole_producer(const ir::Node& user, const ir::Value* v) const {
    const ir::Node* node = v->producer;
    return node && node->parent == user.parent && uses_.once(v) ? node : nullptr;
  }

  ir::Value* zero_of(ir::Value* zero, ElementType type, std::string_view name) {
    return zero ? zero : graph_.new_constant(name, Tensor::scalar<uint8_t>(type, 0));
  }

  // Finds the operands of an operation: `a` is bytes, `b` other bytes or floats. `op`: the operation on them. Floats
  // minus bytes are treated as bytes with a negative scale plus floats.
  bool operands(const ir::Node& made, Bytes& a, Bytes& b, std::string& op) {
    const auto number = [&](float x) {
      return graph_.new_constant(made.name, Tensor::scalar<float>(ElementType::kFloat, x));
    };
    const auto is_bytes = [](const ir::Value* v, Bytes& bytes) { return dequantized(v, bytes) && is_moderate(bytes); };
    op = made.op->name;
    ir::Value* other = made.inputs[1];
    if (!is_bytes(made.inputs[0], a)) {
      if (!is_bytes(other, a)) return false;
      other = made.inputs[0];
      if (is(made, "Sub")) {
        op = "Add";
        a.scale = number(-*static_cast<const float*>(a.scale->constant.raw()));
      }
    }
    if (is_bytes(other, b)) return true;
    b = {other, number(1), number(0), ElementType::kFloat, 1};
    return true;
  }

  bool pair(ir::Node& node) {
    const ir::Node* made = sole_producer(node, node.inputs[0]);
    const auto bounds = made ? clamp_of(*made) : std::nullopt;
    if (bounds) made = sole_producer(*made, made->inputs[0]);
    if (!is_any(made, {"Add", "Sub", "Mul"})) return false;
    if (made->attributes.has("axis")) return false;  // old versions align operands differently
    Bytes a, b;
    std::string op;
    if (!operands(*made, a, b, op)) return false;
    note(remarks_, Change::kRestated, *node.parent, node, "one pass over bytes");
    const ElementType type = node.outputs[0]->type.element;
    std::vector<ir::Value*> inputs{a.x,
                                   a.scale,
                                   zero_of(a.zero, a.type, node.name),
                                   b.x,
                                   b.scale,
                                   zero_of(b.zero, b.type, node.name),
                                   node.inputs[1],
                                   zero_of(input(node, 2), type, node.name)};
    become(node, require_op("QuantizedPairs", "treadle"));
    set_inputs(node, std::move(inputs));
    node.attributes.set(ir::Attribute::of("op", op));
    if (bounds) {
      node.attributes.set(ir::Attribute::of("low", bounds->low));
      node.attributes.set(ir::Attribute::of("high", bounds->high));
    }
    return true;
  }

  // --- nodes that move elements

  static size_t moved_inputs(const ir::Node& move) { return is(move, "Concat") ? move.inputs.size() : 1; }

  static bool takes(const ir::Node& move, ElementType type) {
    const TypeConstraint* allowed = move.version->constraint(move.version->inputs[0]);
    return allowed && allowed->types.tensor.contains(type);
  }

  static bool moves(const ir::Node& node) {
    return is_any(&node, {"Concat", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Expand",
                          "Tile", "Gather", "GatherElements", "GatherND", "DepthToSpace", "SpaceToDepth"});
  }

  // Whether a QuantizeLinear of `v` costs less than one behind the node that moves `v`.
  bool is_worth(const ir::Node& user, const ir::Value* v, int depth = 0) {
    if (function_.source(v)) return true;
    const ir::Node* made = sole_producer(user, v);
    if (!made) return false;
    if (is(*made, kScaledProduct, "treadle") || is(*made, kScaledConvolution, "treadle")) return true;
    constexpr int kDeepest = 8;
    return moves(*made) && depth < kDeepest && is_worth(*made, made->inputs[0], depth + 1);
  }

  bool swap_with_move(ir::Region& region, size_t at) {
    ir::Node& node = *region.nodes[at];
    const ir::Node* move = sole_producer(node, node.inputs[0]);
    if (!move || !takes(*move, node.outputs[0]->type.element)) return false;
    bool found = false;
    if (moves(*move)) {
      for (size_t i = 0; i < moved_inputs(*move); ++i) found |= is_worth(*move, move->inputs[i]);
    } else if (is(*move, "MaxPool") && move->outputs.size() == 1) {
      found = function_.source(move->inputs[0]) != nullptr;  // MaxPool needs an order, so NaN must not occur
    }
    if (!found) return false;
    note(remarks_, Change::kRestated, region, node, move->op->name);
    quantize_operands(region, at, *move);
    return true;
  }

  // The node becomes the moving node, on bytes.
  void quantize_operands(ir::Region& region, size_t at, const ir::Node& move) {
    ir::Node& node = *region.nodes[at];
    const ElementType type = node.outputs[0]->type.element;
    std::vector<ir::Value*> inputs(move.inputs.begin(), move.inputs.end());
    Builder build(graph_, region, at);
    for (size_t i = 0; i < moved_inputs(move); ++i) {
      ir::Node* made = build.node("QuantizeLinear", node.name);
      become(*made, *node.op, *node.version, node.attributes);
      graph_.add_input(made, inputs[i]);
      graph_.add_input(made, node.inputs[1]);
      if (ir::Value* zero = input(node, 2)) graph_.add_input(made, zero);
      Type quantized = inputs[i]->type;
      quantized.element = type;
      inputs[i] = graph_.add_output(made, node.name, std::move(quantized));
    }
    become(node, *move.op, *move.version, move.attributes);
    set_inputs(node, std::move(inputs));
  }

  ir::Graph& graph_;
  Remarks* remarks_;
  const Uses uses_;  // counted before any node was replaced
  ByteFunction function_;
};

}  // namespace

void compute_on_bytes(ir::Graph& graph, Remarks* remarks) {
  if (!has_node(graph.top(), quantizes_to_bytes)) return;
  ByteChains(graph, remarks).run();
  remove_dead_nodes(graph, remarks);  // later passes count uses
}

}  // namespace treadle::opt
