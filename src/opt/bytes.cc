#include "opt/bytes.h"

#include "opt/match.h"

namespace treadle::opt {

namespace {

// The type of the quantised tensor. Types of results need not be inferred yet.
ElementType type_of(const ir::Value& x, const ir::Value* zero) {
  if (x.is_constant()) return x.constant.type();
  if (zero) return zero->is_constant() ? zero->constant.type() : ElementType::kUndefined;
  if (!x.producer) return x.type.element;
  const bool quantized = is(x.producer, "QuantizeLinear") && !input(*x.producer, 2);
  return quantized && x.producer->attributes.get_int("output_dtype") == 0 ? ElementType::kUint8
                                                                          : ElementType::kUndefined;
}

}  // namespace

ir::Value* input(const ir::Node& node, size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : nullptr;
}

void set_inputs(ir::Node& node, std::vector<ir::Value*> inputs) {
  node.inputs.assign(inputs.begin(), inputs.end());
  node.input_count = static_cast<uint32_t>(node.inputs.size());
}

bool is_byte(ElementType type) {
  return type == ElementType::kUint8 || type == ElementType::kInt8;
}

bool is_one(const ir::Value* v, ElementType type) {
  return v && v->is_constant() && v->constant.type() == type && v->constant.element_count() == 1;
}

bool dequantized(const ir::Value* v, Bytes& found) {
  const ir::Node* node = v ? v->producer : nullptr;
  const bool is_kept = node && is(*node, "DequantizedWeights", "treadle");
  if (!(is_kept || is(node, "DequantizeLinear")) || node->attributes.get_int("block_size") != 0) return false;
  if (node->attributes.get_int("output_dtype") > static_cast<int64_t>(ElementType::kFloat)) return false;
  found = {node->inputs[0], node->inputs[1], input(*node, 2), ElementType::kUndefined,
           node->attributes.get_int("axis", 1)};
  found.type = type_of(*found.x, found.zero);
  const bool constant = found.scale->is_constant() && found.scale->constant.type() == ElementType::kFloat;
  return constant && is_byte(found.type) && (!found.zero || found.zero->is_constant());
}

bool has_one_scale(const Bytes& bytes) {
  return is_one(bytes.scale, ElementType::kFloat) && (!bytes.zero || is_one(bytes.zero, bytes.type));
}

}  // namespace treadle::opt
