#pragma once
// Reductions over any set of axes, positions of extremes, running sums.
//
// Order of a sum: row-major along the reduced elements. Blocks of reduce_block() neighbouring elements are summed in
// the compute type, in lanes that the instruction set fixes. (If the innermost dimension is kept, a block is so many
// rows along the innermost reduced dimension.) The sums of blocks are added in order, in double for floats and in 64
// bits for integers. Products are in double throughout. The order does not depend on threads, or on how outputs are
// split among calls. kernels/sum_order.h combines the elements of a block, for kernels and for native code.

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
  kMax,  // NaN propagates; for bool: or
  kMin,  // for bool: and
  kProd,
  kL1,
  kL2,
  kLogSum,
  kLogSumExp,
  kSumSquare,
};

inline constexpr size_t kReduceBlock = 512;
// Rows of a block if the innermost dimension is kept and elements are converted first.
inline constexpr size_t kConvertedRows = 32;
// Elements of a block of any reduction; rows if `columns`.
inline size_t reduce_block(ElementType type, bool columns) {
  return columns && wide_type(type) != type ? kConvertedRows : kReduceBlock;
}
inline constexpr int kMaxReduceDims = 8;

struct ReduceTable;

// A plain struct. Types: the compute types f32, f64, i32, i64, u32, u64, and types that are stored narrower than these;
// bool for kMax and kMin.
struct ReducePlan {
  using Run = void (*)(const ReducePlan& plan, const void* input, void* output);

  Run run = nullptr;
  const ReduceTable* table = nullptr;
  ReduceOp op{};
  ComputeType compute{};
  uint8_t kept_rank = 0;  // number of kept dimensions around the innermost one
  uint8_t reduced_rank = 0;
  bool columns = false;  // the innermost dimension is kept
  uint8_t width = 0;     // bytes of an element
  TileConverter load;    // converts to the compute type
  TileConverter store;
  size_t count = 1;    // elements reduced into one result
  size_t outputs = 1;  // results
  size_t inner = 1;    // size of the innermost dimension
  int64_t kept_dims[kMaxReduceDims] = {};
  int64_t kept_strides[kMaxReduceDims] = {};  // in bytes
  int64_t reduced_dims[kMaxReduceDims] = {};
  int64_t reduced_strides[kMaxReduceDims] = {};

  // The number of independent parts in which the results may be computed.
  size_t parts() const;
  void run_parts(const void* input, void* output, size_t begin, size_t end) const;
  // Input and output are contiguous; the output has the kept axes in order. Without elements: Sum 0, Prod 1, Max -inf
  // (integers the lowest, bool false), Min the opposite, Mean NaN (integers 0), logarithms -inf.
  void operator()(const void* input, void* output) const { run(*this, input, output); }
};

// begin_reduce sets everything that does not depend on sizes; size_reduce sets the rest. reduced[d]: whether dimension
// d is reduced. If none is, each element is reduced by itself.
Status begin_reduce(ReducePlan* plan, ReduceOp op, ElementType type);
Status size_reduce(ReducePlan* plan, std::span<const int64_t> dims, std::span<const bool> reduced);
// begin_reduce and size_reduce.
Status prepare_reduce(ReducePlan* plan, ReduceOp op, ElementType type, std::span<const int64_t> dims,
                      std::span<const bool> reduced);
bool has_reduce(ReduceOp op, ElementType type);

// Positions of the extremes along the middle axis of [outer, n, inner], n >= 1; out is int64 [outer, inner]. The first
// of equal elements counts, or the last on request. NaN counts as the extreme.
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
