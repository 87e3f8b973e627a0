#pragma once
// The activation at the end of a fused operator, which an attribute names.

#include <span>
#include <string>
#include <string_view>

#include "op/context.h"
#include "op/op_def.h"

namespace treadle::fused {

// Parameters in onnxruntime's order: alpha, beta, gamma of the operator, or min and max of Clip.
struct Activation {
  std::string name;  // empty: none
  InlineVector<float, 3> parameters;

  // Errors: an unknown name, with the valid ones.
  Status check() const;
  ir::Value* apply(LowerContext& ctx, ir::Value* x, ElementType type) const;
};

// Reads attributes `activation`, and `activation_params` or `activation_alpha`, `_beta` and `_gamma`.
Activation read_activation(const ir::Attributes& attributes);

void add_activation_letters(VersionBuilder& version);

}  // namespace treadle::fused
