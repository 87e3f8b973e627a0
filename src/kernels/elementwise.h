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

// Dimensions around the innermost one that are left after neighbours that every operand walks alike were merged.
inline constexpr int kMaxElementwiseDims = 12;

// How one operand lies in memory. Strides in elements, one per dimension of the result (as many as `dims` of the
// preparation), 0 where the operand is broadcast. Any strides, negative ones too.
struct ElementwiseOperand {
  ElementType type = ElementType::kUndefined;
  std::span<const int64_t> strides;
};

// Plain data, copyable; everything that depends on shapes, types and strides was decided when it was made.
struct ElementwisePlan {
  using Run = uint32_t (*)(const ElementwisePlan& plan, const void* const* inputs, void* output);

  Run run = nullptr;
  Row row = nullptr;  // for the innermost dimension; null for Where
  WhereRow where = nullptr;
  size_t count = 0;  // elements of the result
  size_t inner = 0;  // of them in the innermost dimension
  double ns = 0;     // about what they take
  ElementwiseParams params;
  ElementwiseOp op{};
  ComputeType compute{};
  uint8_t inputs = 0;
  uint8_t outer_rank = 0;        // dimensions around the innermost one, after merging
  uint8_t scalar_mask = 0;       // bit i: input i does not move along the innermost dimension
  uint8_t tile_mask = 0;         // bit i: input i is gathered or converted by tiles; bit 3: the result is
  uint8_t width[4] = {};         // bytes per element in memory: inputs, then the result at [3]
  uint8_t row_width[4] = {};     // bytes per element in the row
  TileConverter convert[4];      // used for what is in tile_mask
  int64_t inner_stride[4] = {};  // in bytes
  int64_t dims[kMaxElementwiseDims] = {};
  int64_t strides[4][kMaxElementwiseDims] = {};  // in bytes

  // 0 or an Error. inputs[i] points at the element of index 0 in every dimension (null for an absent bound of Clip).
  // The output may be the same memory as an input of equal type, strides and size; it must not overlap one otherwise.
  // What takes long asks in between whether to stop.
  uint32_t operator()(const void* const* in, void* out) const {
    return ns <= kShortNs ? run(*this, in, out) : run_in_pieces(in, out);
  }
  // The same in parts(), in any order: positions of the outermost dimension that is walked.
  int64_t parts() const { return outer_rank > 0 ? dims[0] : static_cast<int64_t>(inner); }
  uint32_t run_parts(const void* const* in, void* out, int64_t begin, int64_t end) const;

 private:
  uint32_t run_in_pieces(const void* const* in, void* out) const;
  bool run_in_pieces(const void* const* in, void* out, StopPoll& stop, uint32_t& failed) const;
  // Parts [begin, end), and where their operands begin.
  ElementwisePlan some_parts(int64_t begin, int64_t end, const void* const* in, const void** part_in, void** out) const;
};

// Arithmetic is done in the compute type of the first input (of x for Where); every operand that is stored differently
// is converted by Cast's rules, the result too, so mixed types (Pow, fused casts) are allowed. Where copies and needs
// one type throughout; its condition is bool. Fails when the operation has no rows for the type, or on more than
// kMaxElementwiseDims dimensions that cannot be merged.
Status prepare_elementwise(ElementwisePlan* plan, ElementwiseOp op, std::span<const int64_t> dims,
                           std::span<const ElementwiseOperand> inputs, const ElementwiseOperand& output,
                           const ElementwiseParams& params = {});

// The common case: contiguous operands, each of `count` elements or a single one (scalar_mask bit i), one element type
// (the result is bool where the operation's is).
Status prepare_elementwise(ElementwisePlan* plan, ElementwiseOp op, ElementType type, size_t count,
                           unsigned scalar_mask, const ElementwiseParams& params = {});

}  // namespace treadle::kernels
