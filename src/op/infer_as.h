#pragma once
// Inference by the rules of another operator, for operators that replace others.

#include <initializer_list>
#include <string_view>

#include "op/context.h"

namespace treadle {

// Infers by standard operator `op`, whose inputs are the inputs of this node with the given numbers.
Status infer_as(InferContext& ctx, std::string_view op, std::span<const size_t> inputs);
inline Status infer_as(InferContext& ctx, std::string_view op, std::initializer_list<size_t> inputs) {
  return infer_as(ctx, op, std::span(inputs.begin(), inputs.size()));
}

}  // namespace treadle
