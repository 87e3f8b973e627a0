#pragma once
// Matrix products over tensors: stacks of matrices, operands in types that the kernels do not compute in, constant
// right-hand sides packed once. MatMul, Gemm and Einsum are built on it.

#include <algorithm>
#include <memory>

#include "kernels/convert.h"
#include "kernels/gemm.h"
#include "kernels/move.h"
#include "kernels/stacked_rows.h"
#include "op/context.h"

namespace treadle {

// Parts of one scratch buffer.
class ScratchLayout {
 public:
  // Offset of `bytes` more, 64-byte aligned.
  size_t add(size_t bytes) {
    const size_t offset = size_;
    size_ += (bytes + 63) / 64 * 64;
    return offset;
  }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

// An attribute that rewriting gives to products (opt::narrow_weights): a constant right-hand side is packed in float16.
inline constexpr const char* kHalfWeights = "half_weights";

// An operand in the type that is computed in. Where that is not its own, it is brought into scratch first.
struct WideOperand {
  Dims strides;  // of what get() returns
  bool gather = false, widen = false;
  kernels::CopyPlan copy;  // of any strides to row-major
  kernels::TileConverter converter;
  size_t count = 0;
  size_t gathered = 0, widened = 0;  // offsets in scratch

  Status prepare(const Operand& operand, ElementType wide, ScratchLayout& scratch);
  const void* get(const void* data, std::byte* scratch) const;
};

// The contents of a constant in the type that is computed in. Ends early where it is told to stop, as packing does.
class WideConstant {
 public:
  WideConstant(const Operand& operand, ElementType wide);
  const void* data() const { return data_; }

 private:
  const void* data_;
  std::unique_ptr<std::byte[]> widened_;
};

// Distinguishes the forms that one constant may be packed in: of elements that are stored as `stored`.
uint64_t packed_layout(const kernels::GemmPlan& plan, ElementType stored);

// A constant matrix of floats that is stored as bytes: of uint8 or int8, with a scale and a zero point for all of them
// or for each column of the product.
struct DequantizedOperand {
  Operand bytes, scale, zero;  // `zero` may be left out
};

// A matrix of results cut into blocks for threads to take. Blocks are large enough to be worth it; one block is the
// whole matrix where the work is small.
struct ProductGrid {
  int64_t m = 0, n = 0;
  int64_t row_step = 0, column_step = 0;
  int64_t row_blocks = 1, column_blocks = 1;
  double block_ns = 0;

  // `ns`: what one of `matrices` matrices takes; columns are cut at multiples of `column_unit`.
  static ProductGrid cut(int64_t m, int64_t n, double ns, int64_t matrices, int64_t column_unit, int threads);
  int64_t blocks() const { return row_blocks * column_blocks; }
  // Blocks of the same rows, of up to `most` from `block` on: one range for a kernel, which is quicker than one each.
  int64_t in_one_row(int64_t block, int64_t most) const {
    return std::min(most, column_blocks - block % column_blocks);
  }
  kernels::GemmRange range(int64_t block, int64_t count = 1) const;
};

// c[i] = a[i] b[i] for all matrices i of a stack.
struct StackedGemm {
  // One dimension of the stack; strides in elements.
  struct Level {
    int64_t size, a, b, c;
  };
  static constexpr size_t kMaxLevels = 12;

  kernels::GemmPlan plan;
  InlineVector<Level, 2> levels;  // outer first
  size_t width = 4;               // bytes of an element
  const std::byte* packed = nullptr;
  size_t gemm_scratch = 0;    // offset in scratch
  size_t worker_scratch = 0;  // bytes of it for each thread
  int64_t matrices = 1;
  ProductGrid grid;
  // Set where every product is a row times a matrix as it lies, too little for several threads to share.
  kernels::StackedRowsRun single_rows = nullptr;

  // `shape` without b_packed. Levels that A's rows run through and B does not take part in become rows.
  Status prepare(ElementType wide, kernels::GemmShape shape, std::span<const Level> stack, ScratchLayout& scratch,
                 int threads);
  // Packs the constant `b` of row-major matrices, now or when it was first seen; run() ignores its b from then on.
  Status pack(const Operand& b, PackCache& packs, ElementType wide);
  // The same of one matrix of floats that are constant bytes less a zero point, times a scale. Bytes stay bytes where
  // that saves more time than it takes.
  Status pack(const DequantizedOperand& b, PackCache& packs);

  // What runs keep (PrepareContext::kept_bytes): the direction in which the last one read B.
  size_t kept_bytes() const { return plan.alternates ? 1 : 0; }

  // `kept`: null, or what runs keep.
  void run(const void* a, const void* b, const void* bias, void* c, std::byte* scratch, void* kept) const;
  // The first `rows` rows of a single matrix.
  void run_rows(int64_t rows, const void* a, const void* b, const void* bias, void* c, std::byte* scratch,
                void* kept) const;
  double cost_ns() const { return static_cast<double>(matrices * grid.blocks()) * grid.block_ns; }

 private:
  class Walk;
  void run_single_rows(const void* a, const void* b, void* c) const;
  const void* matrix_b(const void* b, int64_t offset) const;
};

}  // namespace treadle
