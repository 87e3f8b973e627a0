#pragma once
// Known contents of small tensors that sizes are computed from, including floats (type/dim_fractions.h).

#include <optional>

#include "op/elementwise.h"
#include "op/op_def.h"

namespace treadle {

// The contents of an integer tensor of at most one dimension; nullopt if one of them is 2^63 or more.
std::optional<Shape> dims_of(const Tensor& t);
// The contents of float input i, if it is a tensor that sizes may be computed from. Includes constants.
std::optional<Shape> small_reals(const InferContext& ctx, size_t i);
// The contents of input i, integers or reals, for operators that move elements.
std::optional<Shape> small_contents(const InferContext& ctx, size_t i);
// Whether contents of output 0 may be of use: it is a float tensor of at most one dimension.
bool wants_small_reals(const InferContext& ctx);
// Contents of a float result, element by element; fn(a, b) has to be exact.
void infer_real_symbols(InferContext& ctx, DimFn fn);

// Inference of a binary operator that is used for arithmetic on sizes, in integers or floats.
template <DimFn kFn, DimFn kRealFn>
Status infer_size_arithmetic(InferContext& ctx) {
  TREADLE_TRY(infer_arithmetic<kFn>(ctx));
  infer_real_symbols(ctx, kRealFn);
  return {};
}

}  // namespace treadle
