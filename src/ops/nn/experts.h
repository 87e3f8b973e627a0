#pragma once
// Shared parts of the mixtures of experts MoE and QMoE.

#include <array>
#include <span>

#include "op/axes.h"
#include "op/op_def.h"

namespace treadle::nn {

// Inputs of treadle's operator Experts: those of MoE, then the router's weights if they differ from its scores.
inline constexpr size_t kExpertInputs = 9;
inline constexpr std::array kExpertAttributes{"activation_alpha", "activation_beta", "activation_type", "k",
                                              "swiglu_fusion",    "swiglu_limit",    "use_sparse_mixer"};

void add_expert_attributes(VersionBuilder& version);

// Checks tokens (input 0), the router's scores (input 1) and the attributes of routing.
Status check_routing(const InferContext& ctx);

// Experts with these inputs and the node's attributes, computed in float; the result has `type`. `normalized`: the
// weights of a token's experts are divided by their sum.
ir::Value* call_experts(LowerContext& ctx, std::span<ir::Value* const> inputs, ElementType type, bool normalized);

// Axis rule: rows of input 0 and input 1 are independent.
Status token_axes(AxisContext& c);

}  // namespace treadle::nn
