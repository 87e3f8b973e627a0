#pragma once
// Mixtures of experts: what MoE and QMoE share.

#include <array>
#include <span>

#include "op/axes.h"
#include "op/op_def.h"

namespace treadle::nn {

// Of treadle's operator Experts, whose inputs are those of MoE and then the router's weights, where they are not its
// scores.
inline constexpr size_t kExpertInputs = 9;
inline constexpr std::array kExpertAttributes{"activation_alpha", "activation_beta", "activation_type", "k",
                                              "swiglu_fusion",    "swiglu_limit",    "use_sparse_mixer"};

void add_expert_attributes(VersionBuilder& version);

// Checks tokens (input 0), the router's scores (input 1) and the attributes that say how they are used.
Status check_routing(const InferContext& ctx);

// Experts of these inputs, in float, with the node's attributes; the result in `type`. `normalized`: the weights of a
// token's experts are divided by their sum.
ir::Value* call_experts(LowerContext& ctx, std::span<ir::Value* const> inputs, ElementType type, bool normalized);

// Where axes go: rows of input 0 and input 1.
Status token_axes(AxisContext& c);

}  // namespace treadle::nn
