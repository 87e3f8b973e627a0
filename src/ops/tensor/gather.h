#pragma once
// What Gather, GatherElements and GatherND share.

#include <cstdint>
#include <optional>
#include <utility>

#include "op/context.h"
#include "op/kernel.h"
#include "op/moves.h"
#include "op/small_contents.h"
#include "ops/tensor/walk.h"

namespace treadle::tensor_ops {

inline uint32_t out_of_range(int64_t index, int64_t size) {
  return fail(KernelError::kIndexOutOfRange, index, size);
}

// The symbols that indices pick out of a list of sizes.
inline void gather_symbols(InferContext& c, const std::optional<Shape>& indices) {
  if (!indices) return;
  const auto values = small_contents(c, 0);
  if (!values || c.shape(0)->size() != 1) return;
  Shape picked;
  for (const Dim& index : *indices) {
    const int64_t i = index.is_known() ? checked_index(index.value(), static_cast<int64_t>(values->size())) : -1;
    picked.push_back(i < 0 ? Dim::unknown() : (*values)[static_cast<size_t>(i)]);
  }
  c.set_output_symbols(0, std::move(picked));
}

// Element k of constant indices along an axis of size n; -1: outside of it.
inline int64_t constant_position(const Operand& indices, int64_t k, int64_t n) {
  const bool wide = indices.type == ElementType::kInt64;
  return checked_index(wide ? static_cast<const int64_t*>(indices.constant)[k]
                            : int64_t{static_cast<const int32_t*>(indices.constant)[k]},
                       n);
}

// Where every element of the result comes from, `from(k)`, unless one is outside (-1). Only for constant indices.
template <class Fn>
void say_gathered(PrepareContext& c, Fn&& from) {
  Moves* moves = c.inputs[1].constant ? moves_of(c) : nullptr;
  for (size_t k = 0; moves && k < moves->from[0].size(); ++k) {
    const int64_t element = from(static_cast<int64_t>(k));
    if (element < 0) return withdraw_moves(c);
    moves->from[0][k] = element;
  }
}

}  // namespace treadle::tensor_ops
