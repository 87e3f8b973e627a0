#pragma once
// Where the elements of small results come from. Operators that only move elements (OpDef::moves_elements) state it
// when they are prepared, in ElementwiseForm::moves.

#include <cstdint>
#include <span>
#include <vector>

#include "op/context.h"

namespace treadle {

struct Moves {
  // By input of the node: the number of its first element. Elements are counted through all inputs that have the formal
  // type of the results. -1: the input has another type, or is left out.
  std::vector<int64_t> first;
  // By output and element: the number of the element that it copies. A negative number n stands for constants[-1 - n].
  std::vector<std::vector<int64_t>> from;
  std::vector<uint64_t> constants{0};  // as bits

  // Sets out[out_start + sum(i * out_strides)] to in[in_start + sum(i * in_strides)] for all i below `dims`, in
  // elements.
  void copy(size_t input, size_t output, std::span<const int64_t> dims, std::span<const int64_t> in_strides,
            std::span<const int64_t> out_strides, int64_t in_start = 0, int64_t out_start = 0);
};

// One strided copy between an input and an output, or the filling of a part of an output with one element:
// out[out_start + sum(i * out_strides)] = in[in_start + sum(i * in_strides)], in elements.
struct CopiedRegion {
  static constexpr size_t kConstant = SIZE_MAX;
  size_t input = 0;  // kConstant: fills with `bits`
  size_t output = 0;
  int64_t in_start = 0, out_start = 0;
  Dims dims, in_strides, out_strides;
  uint64_t bits = 0;
};

// The moves to be written for `context`'s node; all elements are zeros at first. Null: not asked for, results are
// empty, or too many elements.
Moves* moves_of(PrepareContext& context);
// Withdraws the moves: some elements are not copies of input elements.
void withdraw_moves(PrepareContext& context);

}  // namespace treadle
