#pragma once
// What kernels in loops compute apart from how they do it: for who writes code of its own (plan/native.h). It is told
// when an instruction is emitted, and kept with it (KernelCall::code). Sizes and strides are in elements, outermost
// dimension first.

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "kernels/elementwise_ops.h"
#include "kernels/gemm.h"
#include "kernels/reduce.h"
#include "op/elementwise.h"
#include "plan/program.h"

namespace treadle::plan {

// What a reduction does with its operand, seen as [outer, n, inner]: the middle axis goes.
struct Lines {
  int64_t outer = 1, n = 1, inner = 1;
  bool operator==(const Lines&) const = default;
};

// Types of elements that native code holds and computes with. Elements of 8 and 16 bits are computed with in
// wide_type(), as kernels do it: steps bring their arguments to that type, and their result back.
inline bool is_native(ElementType type) {
  return compute_type(type) != ComputeType::kNone && !is_sub_byte(type) && (!is_float(type) || byte_width(type) > 1);
}

struct ElementwiseCode {
  enum class Broadcast : uint8_t {
    kDense,   // element i of the result takes element i
    kScalar,  // one element
    kOther,   // `strides` over `dims`
  };
  struct Input {
    uint32_t slot = kNoSlot;
    ElementType type = ElementType::kUndefined;
    Broadcast broadcast = Broadcast::kDense;
    Dims dims, strides;  // kOther: of the result; strides in elements, 0 where it is broadcast
    int64_t start = 0;   // kOther: the element that the first one of the result takes
  };
  struct Step {
    bool converts = false;  // else `op`
    kernels::ElementwiseOp op{};
    kernels::ElementwiseParams params;
    ElementType from = ElementType::kUndefined;  // of the arguments (of Where: of the last two)
    ElementType to = ElementType::kUndefined;
    uint8_t argument_count = 0;
    // Below inputs.size(): an input; from there on: the result of an earlier step.
    uint16_t arguments[3] = {};
  };
  struct Output {
    uint16_t step = 0;
    uint32_t slot = kNoSlot;
  };
  // The middle axis of a step's result, seen as [outer, n, inner], is reduced, in the order that kernels/reduce.h
  // states.
  struct Reduction {
    uint16_t step = 0;
    uint32_t slot = kNoSlot;
    kernels::ReduceOp op{};
  };
  int64_t count = 0;  // elements of every step's result
  std::vector<Input> inputs;
  std::vector<Step> steps;
  std::vector<Output> outputs;
  std::vector<Reduction> reductions;
  Lines lines;  // of all reductions
};

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
struct ArgReductionCode {
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
  kernels::GemmPanels panels;  // of a constant b, packed (KernelCode::packed); no columns: it is not
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
  // The same as copies between parts of operands, for those who write loops.
  struct Region {
    uint32_t from = kNoSlot, to = kNoSlot;  // no `from`: `bits` everywhere
    int64_t in_start = 0, out_start = 0;
    Dims dims, in_strides, out_strides;
    uint64_t bits = 0;
  };
  ElementType type = ElementType::kUndefined;
  bool is_listed = true;  // `outputs` are known: elements are few
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<uint64_t> constants;
  std::vector<Region> regions;  // none: they are not known
};

// Slices of `data` as [outer, n, row] by `count` indices, which count from the end where they are negative and may lie
// outside; the result is [outer, count, row].
struct GatherCode {
  uint32_t data = kNoSlot, index = kNoSlot, to = kNoSlot;
  ElementType type = ElementType::kUndefined;
  bool wide = true;  // indices of 64 bits, else of 32
  int64_t outer = 0, n = 0, row = 0, count = 0;
};

using InstructionCode = std::variant<MoveCode, ReductionCode, ArgReductionCode, ProductCode, GatherCode>;

// At most one of the two; none where native code does not compute with the elements, or where it works on large
// constants.
struct KernelCode {
  std::optional<ElementwiseCode> elementwise;
  std::optional<InstructionCode> other;
  const void* packed = nullptr;  // the constant of a product with panels
};

inline const ElementwiseCode* elementwise_code(const Program& program, uint32_t pc) {
  const KernelCall* call = kernel_of(program, pc);
  return call && call->code && call->code->elementwise ? &*call->code->elementwise : nullptr;
}
inline const InstructionCode* other_code(const Program& program, uint32_t pc) {
  const KernelCall* call = kernel_of(program, pc);
  return call && call->code && call->code->other ? &*call->code->other : nullptr;
}

// The slots that it names: operands of its call, or kNoSlot.
std::vector<uint32_t> slots_of(const KernelCode& code);

// Of a group, by the forms of its nodes: operands are `inputs`, then `outputs`, then what reductions make.
struct ValueLists {
  std::span<const ir::Value* const> inputs, outputs;
};
class Fusion;
struct Unit;
std::shared_ptr<const KernelCode> code_of_group(const Fusion& fusion, const Unit& unit, const ValueLists& values,
                                                const KernelCall& call);
// Of one node, whose preparation gave `form` and the call's kernel. Null: native code has to call the kernel.
std::shared_ptr<const KernelCode> code_of_node(const ir::Node& node, const ElementwiseForm& form,
                                               const KernelCall& call);

}  // namespace treadle::plan
