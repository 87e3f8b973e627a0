#pragma once
// Tensors of bytes with a scale and a zero point, for the passes that remove DequantizeLinear.

#include <vector>

#include "opt/remarks.h"

namespace treadle::opt {

// Nodes between DequantizeLinear and QuantizeLinear compute on bytes: a function of one byte becomes a table, a sum or
// product of two becomes one pass, and a node that moves elements moves bytes. Needs types; results keep their bits.
void compute_on_bytes(ir::Graph& graph, Remarks* remarks = nullptr);

// Null if the node has fewer inputs.
ir::Value* input(const ir::Node& node, size_t i);
void set_inputs(ir::Node& node, std::vector<ir::Value*> inputs);

bool is_byte(ElementType type);
// Whether `v` is a constant of one element.
bool is_one(const ir::Value* v, ElementType type);

// The operands of a DequantizeLinear.
struct Bytes {
  ir::Value *x = nullptr, *scale = nullptr, *zero = nullptr;
  ElementType type = ElementType::kUndefined;
  int64_t axis = 1;
};
// Whether `v` is dequantised bytes with constant float scales. Types need not be inferred yet.
bool dequantized(const ir::Value* v, Bytes& found);
bool has_one_scale(const Bytes& bytes);

// Nodes that multiply bytes and may quantise their results.
inline constexpr const char* kScaledProduct = "ScaledMatMulInteger";
inline constexpr const char* kScaledConvolution = "ScaledConvInteger";

}  // namespace treadle::opt
