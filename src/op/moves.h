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

  // By input of the node: the number of its first element, elements being counted through all inputs of the results'
  // formal type; -1: another type, or left out.
  std::vector<int64_t> first;
  // By output and by element: the number of the element that it is; below 0: constants[-1 - it].
  std::vector<std::vector<int64_t>> from;
  std::vector<uint64_t> constants{0};  // bits

  // out[out_start + sum(i * out_strides)] is in[in_start + sum(i * in_strides)] for all i below `dims`, in elements.
  void copy(size_t input, size_t output, std::span<const int64_t> dims, std::span<const int64_t> in_strides,
            std::span<const int64_t> out_strides, int64_t in_start = 0, int64_t out_start = 0);
};

// What one strided copy between an input and an output moves, or one element to all of a part of an output:
// out[out_start
// + sum(i * out_strides)] = in[in_start + sum(i * in_strides)], in elements.
struct CopiedRegion {
  static constexpr size_t kConstant = SIZE_MAX;
  size_t input = 0;  // kConstant: `bits`
  size_t output = 0;
  int64_t in_start = 0, out_start = 0;
  Dims dims, in_strides, out_strides;
  uint64_t bits = 0;
};

// Where `context`'s node can say it; all elements are zeros so far. Null: nobody asks, results are empty, or too many
// elements move.
Moves* moves_of(PrepareContext& context);
// Takes back what has been said: some elements are none of an input's.
void withdraw_moves(PrepareContext& context);

}  // namespace treadle
