#pragma once
// Matrix products over tensors: stacks of matrices, operands of types that the kernels convert first, and constant
// right-hand sides that are packed once. MatMul, Gemm and Einsum use it.

#include <algorithm>
#include <memory>
#include <string_view>

#include "kernels/convert.h"
#include "kernels/gemm.h"
#include "kernels/move.h"
#include "kernels/stacked_rows.h"
#include "op/context.h"

namespace treadle {

// Lays out parts of one scratch buffer.
class ScratchLayout {
 public:
  // Adds `bytes`, 64-byte aligned, and returns their offset.
  size_t add(size_t bytes) {
    const size_t offset = size_;
    size_ += (bytes + 63) / 64 * 64;
    return offset;
  }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

// An attribute that opt::narrow_weights gives to products: a constant right-hand side is packed in float16.
inline constexpr const char* kHalfWeights = "half_weights";
// An attribute that rewriting gives to recurrent operators (opt::mark_recurrent), and their lowerings to the products
// that they make.
inline constexpr const char* kOfRecurrence = "of_recurrence";

// An operand in the type of the computation. If it is stored in another type, it is converted into scratch first.
struct WideOperand {
  Dims strides;  // strides of get()'s result
  bool gather = false, widen = false;
  kernels::CopyPlan copy;  // from any strides to row-major
  kernels::TileConverter converter;
  size_t count = 0;
  size_t gathered = 0, widened = 0;  // offsets in scratch

  Status prepare(const Operand& operand, ElementType wide, ScratchLayout& scratch);
  const void* get(const void* data, std::byte* scratch) const;
};

// The contents of a constant in the type of the computation. Stops early if the work is told to stop, as packing does.
class WideConstant {
 public:
  WideConstant(const Operand& operand, ElementType wide);
  const void* data() const { return data_; }

 private:
  const void* data_;
  std::unique_ptr<std::byte[]> widened_;
};

// Distinguishes the packed forms of one constant whose elements are stored as `stored`.
uint64_t packed_layout(const kernels::GemmPlan& plan, ElementType stored);

// A constant matrix of floats stored as bytes: uint8 or int8, with one scale and zero point for all or for each column
// of the product.
struct DequantizedOperand {
  Operand bytes, scale, zero;  // `zero` may be left out
};

// The result matrix cut into blocks for threads. Blocks are large enough to be worth a thread; little work is one
// block.
struct ProductGrid {
  int64_t m = 0, n = 0;
  int64_t row_step = 0, column_step = 0;
  int64_t row_blocks = 1, column_blocks = 1;
  double block_ns = 0;

  // `ns`: time of one of `matrices` matrices. Columns are cut at multiples of `column_unit`.
  static ProductGrid cut(int64_t m, int64_t n, double ns, int64_t matrices, int64_t column_unit, int threads);
  int64_t blocks() const { return row_blocks * column_blocks; }
  // How many blocks from `block` on, at most `most`, share its rows: one call of the kernel for them is faster than
  // several.
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
  InlineVector<Level, 2> levels;  // outermost first
  size_t width = 4;               // bytes of an element
  const std::byte* packed = nullptr;
  size_t gemm_scratch = 0;    // offset in scratch
  size_t worker_scratch = 0;  // bytes of it for each thread
  int64_t matrices = 1;
  ProductGrid grid;
  // Set if each product is a row times an unpacked matrix and the work is too small for several threads.
  kernels::StackedRowsRun single_rows = nullptr;

  // `shape` without b_packed. A level of the stack along which B does not change becomes rows of A if the layout
  // allows.
  Status prepare(ElementType wide, kernels::GemmShape shape, std::span<const Level> stack, ScratchLayout& scratch,
                 int threads);
  // Packs the constant `b` of row-major matrices, or finds it packed. run() then ignores its argument b.
  Status pack(const Operand& b, PackCache& packs, ElementType wide);
  // Packs one constant matrix of floats stored as bytes. The packed form keeps bytes if that is faster.
  Status pack(const DequantizedOperand& b, PackCache& packs);

  // Size of kept memory (PrepareContext::kept_bytes): the direction in which the last run read B.
  size_t kept_bytes() const { return plan.alternates ? 1 : 0; }

  // `kept`: the kept memory, or null.
  void run(const void* a, const void* b, const void* bias, void* c, std::byte* scratch, void* kept) const;
  // Computes the first `rows` rows of a single matrix.
  void run_rows(int64_t rows, const void* a, const void* b, const void* bias, void* c, std::byte* scratch,
                void* kept) const;
  // The name of the way in which run() computes (Kernel::method).
  std::string_view method(bool has_bias) const;
  double cost_ns() const { return static_cast<double>(matrices * grid.blocks()) * grid.block_ns; }

 private:
  class Walk;
  bool takes_single_rows(bool has_bias) const { return single_rows && !packed && !has_bias; }
  void run_single_rows(const void* a, const void* b, void* c) const;
  const void* matrix_b(const void* b, int64_t offset) const;
};

}  // namespace treadle
