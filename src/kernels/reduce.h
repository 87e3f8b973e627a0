#pragma once
// Reductions over any set of axes, positions of extremes, running sums.
//
// Order of a sum: row-major along the reduced elements. Blocks of reduce_block() neighbours (where the innermost
// dimension is kept: of rows of the innermost reduced one) are summed in the compute type, in lanes fixed by the
// instruction set; their sums are added in order in double, integers in 64 bits. Products are in double throughout.
// Nothing depends on threads or on how outputs are split among calls.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "kernels/table.h"
#include "type/element_type.h"

namespace treadle::kernels {

enum class ReduceOp : uint8_t {
  kSum,
  kMean,
  kMax,  // NaN propagates; bool: or
  kMin,  // bool: and
  kProd,
  kL1,
  kL2,
  kLogSum,
  kLogSumExp,
  kSumSquare,
};

inline constexpr size_t kReduceBlock = 512;
// Rows of a block where the innermost dimension is kept and elements are converted first.
inline constexpr size_t kConvertedRows = 32;
// The same for any reduction.
inline size_t reduce_block(ElementType type, bool columns) {
  return columns && wide_type(type) != type ? kConvertedRows : kReduceBlock;
}
inline constexpr int kMaxReduceDims = 8;

struct ReduceTable;

// Plain data. Types: f32, f64, i32, i64, u32, u64 compute types and what is stored for them; bool for kMax and kMin.
struct ReducePlan {
  using Run = void (*)(const ReducePlan& plan, const void* input, void* output);

  Run run = nullptr;
  const ReduceTable* table = nullptr;
  ReduceOp op{};
  ComputeType compute{};
  uint8_t kept_rank = 0;  // dimensions that are walked around the innermost one
  uint8_t reduced_rank = 0;
  bool columns = false;  // the innermost dimension is kept
  uint8_t width = 0;     // bytes of an element
  TileConverter load;    // to the compute type
  TileConverter store;
  size_t count = 1;    // elements reduced into one
  size_t outputs = 1;  // results
  size_t inner = 1;    // size of the innermost dimension
  int64_t kept_dims[kMaxReduceDims] = {};
  int64_t kept_strides[kMaxReduceDims] = {};  // in bytes
  int64_t reduced_dims[kMaxReduceDims] = {};
  int64_t reduced_strides[kMaxReduceDims] = {};

  // The results are computed in this many parts, independent of each other.
  size_t parts() const;
  void run_parts(const void* input, void* output, size_t begin, size_t end) const;
  // The input is contiguous; the output contiguous, in the order of the kept axes. Of no elements: Sum 0, Prod 1,
  // Max -inf (or the lowest integer, false), Min the opposite, Mean NaN (integers 0), logarithms -inf.
  void operator()(const void* input, void* output) const { run(*this, input, output); }
};

// What does not depend on sizes, and the rest. reduced[d]: whether dimension d is reduced. With none, each element is
// reduced by itself.
Status begin_reduce(ReducePlan* plan, ReduceOp op, ElementType type);
Status size_reduce(ReducePlan* plan, std::span<const int64_t> dims, std::span<const bool> reduced);
// Both.
Status prepare_reduce(ReducePlan* plan, ReduceOp op, ElementType type, std::span<const int64_t> dims,
                      std::span<const bool> reduced);
bool has_reduce(ReduceOp op, ElementType type);

// Positions along the middle axis of [outer, n, inner]; out is int64 [outer, inner]; n >= 1. Of equal elements the
// first, or the last on request. A NaN counts as the extreme.
void arg_max(ElementType type, const void* input, int64_t* out, size_t outer, size_t n, size_t inner, bool select_last);
void arg_min(ElementType type, const void* input, int64_t* out, size_t outer, size_t n, size_t inner, bool select_last);

// Running sums along the middle axis of [outer, n, inner], in order, in the compute type.
struct CumSumOptions {
  bool exclusive = false;
  bool reverse = false;
};
void cum_sum(ElementType type, const void* input, void* out, size_t outer, size_t n, size_t inner,
             const CumSumOptions& options);
void cum_prod(ElementType type, const void* input, void* out, size_t outer, size_t n, size_t inner,
              const CumSumOptions& options);

}  // namespace treadle::kernels
