#pragma once
// Elementwise operations over tensors: broadcasting, strides and conversion around the rows of elementwise_ops.h.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/stop.h"
#include "kernels/elementwise_ops.h"
#include "kernels/error.h"
#include "kernels/table.h"
#include "type/element_type.h"

namespace treadle::kernels {

// Limit of the dimensions around the innermost one, after neighbouring dimensions were merged that every operand walks
// with one stride.
inline constexpr int kMaxElementwiseDims = 12;

// The layout of one operand. `strides`: in elements, one per dimension of the result (as many as the preparation's
// `dims`), 0 where the operand is broadcast. Strides may be negative.
struct ElementwiseOperand {
  ElementType type = ElementType::kUndefined;
  std::span<const int64_t> strides;
};

// A plain copyable struct. Everything that depends on shapes, types and strides was decided at preparation.
struct ElementwisePlan {
  using Run = uint32_t (*)(const ElementwisePlan& plan, const void* const* inputs, void* output);

  Run run = nullptr;
  Row row = nullptr;  // for the innermost dimension; null for Where
  WhereRow where = nullptr;
  size_t count = 0;  // elements of the result
  size_t inner = 0;  // elements in the innermost dimension
  double ns = 0;     // estimated time of all elements
  ElementwiseParams params;
  ElementwiseOp op{};
  ComputeType compute{};
  uint8_t inputs = 0;
  uint8_t outer_rank = 0;     // dimensions around the innermost one, after merging
  uint8_t scalar_mask = 0;    // bit i: input i does not move along the innermost dimension
  uint8_t tile_mask = 0;      // bit i: input i is gathered or converted by tiles; bit 3: the result is written by tiles
  uint8_t width[4] = {};      // bytes per element in memory: inputs, then the result at [3]
  uint8_t row_width[4] = {};  // bytes per element in the row
  TileConverter convert[4];   // used for operands in tile_mask
  int64_t inner_stride[4] = {};  // in bytes
  int64_t dims[kMaxElementwiseDims] = {};
  int64_t strides[4][kMaxElementwiseDims] = {};  // in bytes

  // Returns 0 or an Error. inputs[i] points at the element with index 0 in every dimension (null for an absent bound of
  // Clip). The output may be the memory of an input with the same type, strides and size; otherwise they must not
  // overlap. A long operation asks in between whether to stop.
  uint32_t operator()(const void* const* in, void* out) const {
    return ns <= kShortNs ? run(*this, in, out) : run_in_pieces(in, out);
  }
  // Runs a range of parts(), in any order. A part is a position of the outermost dimension.
  int64_t parts() const { return outer_rank > 0 ? dims[0] : static_cast<int64_t>(inner); }
  uint32_t run_parts(const void* const* in, void* out, int64_t begin, int64_t end) const;

 private:
  uint32_t run_in_pieces(const void* const* in, void* out) const;
  bool run_in_pieces(const void* const* in, void* out, StopPoll& stop, uint32_t& failed) const;
  // A plan of the parts [begin, end), and the addresses of its operands.
  ElementwisePlan some_parts(int64_t begin, int64_t end, const void* const* in, const void** part_in, void** out) const;
};

// Arithmetic is done in the compute type of the first input (of x for Where). Operands of other types, and the result,
// are converted by Cast's rules, so types may be mixed (Pow, fused casts). Where copies elements: all its operands have
// one type, and its condition is bool. Errors: the operation has no rows for the type; more than kMaxElementwiseDims
// dimensions remain after merging.
Status prepare_elementwise(ElementwisePlan* plan, ElementwiseOp op, std::span<const int64_t> dims,
                           std::span<const ElementwiseOperand> inputs, const ElementwiseOperand& output,
                           const ElementwiseParams& params = {});

// The common case: contiguous operands of one element type. Each has `count` elements, or a single one if its bit in
// scalar_mask is set. The result is bool if the operation gives bools.
Status prepare_elementwise(ElementwisePlan* plan, ElementwiseOp op, ElementType type, size_t count,
                           unsigned scalar_mask, const ElementwiseParams& params = {});

}  // namespace treadle::kernels
