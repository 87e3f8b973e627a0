#pragma once
// What instructions compute apart from any kernel, where they are not elementwise: for who writes code of its own
// (plan/native.h). Sizes and strides are in elements, outermost dimension first.

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "kernels/gemm.h"
#include "kernels/reduce.h"
#include "plan/program.h"

namespace treadle::plan {

// Sums and their like, in the order that kernels/reduce.h states.
struct ReductionCode {
  kernels::ReduceOp op{};
  uint32_t from = kNoSlot, to = kNoSlot;
  ElementType type = ElementType::kUndefined;
  bool columns = false;  // the innermost dimension is kept, else it is reduced
  // The dimensions that are kept, and those that are reduced, neighbours of a kind merged. The innermost dimension of
  // the operand is the last one of its kind.
  Dims kept, kept_strides, reduced, reduced_strides;
};

// ArgMax and ArgMin along the middle axis of [outer, n, inner]; the result is int64.
struct ExtremeCode {
  uint32_t from = kNoSlot, to = kNoSlot;
  ElementType type = ElementType::kUndefined;
  int64_t outer = 0, n = 0, inner = 0;
  bool greatest = false, last = false;
};

// c[i] = alpha a[i] b[i] + beta bias for all matrices i of a stack, summed as kernels/gemm.h states.
struct ProductCode {
  struct Level {
    int64_t size, a, b, c;  // strides between matrices
  };
  uint32_t a = kNoSlot, b = kNoSlot, bias = kNoSlot, c = kNoSlot;
  ElementType type = ElementType::kUndefined;
  kernels::GemmShape shape;
  int64_t a_count = 0, b_count = 0, bias_count = 0, c_count = 0;  // elements
  std::vector<Level> stack;                                       // outer first
  int64_t panel = 0;  // b is a constant, packed in panels of so many columns (kernels/gemm.h); 0: it is not
};

// Elements of the results are elements of the operands, or bits that never change.
struct MoveCode {
  struct Input {
    uint32_t slot = kNoSlot;
    int64_t count = 0;
  };
  struct Output {
    uint32_t slot = kNoSlot;
    // Element i of the result: the element of that number, counted through all inputs; below 0: constants[-1 - it].
    std::vector<int64_t> from;
  };
  ElementType type = ElementType::kUndefined;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<uint64_t> constants;
};

using InstructionCode = std::variant<MoveCode, ReductionCode, ExtremeCode, ProductCode>;

// nullopt: the instruction is something else, or its elements are not stored as they are computed with, or it works on
// large constants.
std::optional<InstructionCode> describe_instruction(const Program& program, uint32_t pc);

// The packed constant of a product whose code says that there is one.
const void* packed_constant(const Program& program, uint32_t pc);

}  // namespace treadle::plan
