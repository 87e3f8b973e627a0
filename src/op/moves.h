#pragma once
// Where the elements of small results come from: what the preparation of an operator that only moves elements
// (OpDef::moves_elements) says of a node in ElementwiseForm::moves.

#include <cstdint>
#include <span>
#include <vector>

#include "op/context.h"

namespace treadle {

struct Moves {
  static constexpr int64_t kMost = 1024;  // elements of an operand or a result
  static constexpr int32_t kConstant = -1;
  struct From {
    int32_t input = kConstant;
    int64_t element = 0;  // of the input
    uint64_t bits = 0;    // kConstant
  };
  std::vector<std::vector<From>> outputs;  // by output, by element

  // out[out_start + sum(i * out_strides)] is in[in_start + sum(i * in_strides)] for all i below `dims`, in elements.
  void copy(size_t input, size_t output, std::span<const int64_t> dims, std::span<const int64_t> in_strides,
            std::span<const int64_t> out_strides, int64_t in_start = 0, int64_t out_start = 0);
};

// Where `context`'s node can say it, all elements being zeros so far. Null: nobody asks, results are empty, or too many
// elements move.
Moves* moves_of(PrepareContext& context);
// Takes back what has been said: some elements are none of an input's.
void withdraw_moves(PrepareContext& context);

}  // namespace treadle
