#pragma once
// Tensors of bytes with a scale and a zero point, for the passes that leave out what dequantises them.

#include <vector>

#include "opt/remarks.h"

namespace treadle::opt {

// What stands between DequantizeLinear and QuantizeLinear works on bytes: functions of one byte become tables, sums and
// products of two one pass, and nodes that move elements move bytes. Wants types; results are the same bit for bit.
void compute_on_bytes(ir::Graph& graph, Remarks* remarks = nullptr);

// Null where the node has fewer inputs.
ir::Value* input(const ir::Node& node, size_t i);
void set_inputs(ir::Node& node, std::vector<ir::Value*> inputs);

bool is_byte(ElementType type);
// A constant of one element.
bool is_one(const ir::Value* v, ElementType type);

// What a DequantizeLinear reads.
struct Bytes {
  ir::Value *x = nullptr, *scale = nullptr, *zero = nullptr;
  ElementType type = ElementType::kUndefined;
  int64_t axis = 1;
};
// Whether `v` is dequantised bytes with constant float scales; types need not be inferred yet.
bool dequantized(const ir::Value* v, Bytes& found);
bool has_one_scale(const Bytes& bytes);

// Nodes that multiply bytes and may quantise what they make.
inline constexpr const char* kScaledProduct = "ScaledMatMulInteger";
inline constexpr const char* kScaledConvolution = "ScaledConvInteger";

}  // namespace treadle::opt
