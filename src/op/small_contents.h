#pragma once
// Known contents of small tensors that sizes are computed from, floats among them (type/dim_fractions.h).

#include <optional>

#include "op/elementwise.h"
#include "op/op_def.h"

namespace treadle {

// The contents of an integer tensor of at most one dimension; nullopt where one of them is 2^63 or more.
std::optional<Shape> dims_of(const Tensor& t);
// The contents of input i, numbers included, if it is a float tensor that sizes may be computed from.
std::optional<Shape> small_reals(const InferContext& ctx, size_t i);
// Contents of input i as they are, integers or reals: for operators that move elements.
std::optional<Shape> small_contents(const InferContext& ctx, size_t i);
// Whether `ctx` may want the contents of output 0: a float tensor of at most one dimension.
bool wants_small_reals(const InferContext& ctx);
// Contents of a float result, element by element; fn(a, b) is exact.
void infer_real_symbols(InferContext& ctx, DimFn fn);

// Inference of a binary operator that arithmetic on sizes runs through, in integers or in floats.
template <DimFn kFn, DimFn kRealFn>
Status infer_size_arithmetic(InferContext& ctx) {
  TREADLE_TRY(infer_arithmetic<kFn>(ctx));
  infer_real_symbols(ctx, kRealFn);
  return {};
}

}  // namespace treadle
