#pragma once
// The computations of kernels in loops, independent of their code, for native code (plan/native.h). Recorded when an
// instruction is emitted, and kept with it (KernelCall::code). Sizes and strides are in elements, outermost dimension
// first.

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

// The operand of a reduction as [outer, n, inner]; the middle axis is reduced.
struct Lines {
  int64_t outer = 1, n = 1, inner = 1;
  bool operator==(const Lines&) const = default;
};

// Types of elements that native code holds and computes with. Elements of 8 and 16 bits are computed in wide_type(), as
// in kernels: steps convert their arguments to that type, and their result back.
inline bool is_native(ElementType type) {
  return compute_type(type) != ComputeType::kNone && !is_sub_byte(type) && (!is_float(type) || byte_width(type) > 1);
}

struct ElementwiseCode {
  enum class Broadcast : uint8_t {
    kDense,   // element i of the result reads element i
    kScalar,  // one element
    kOther,   // `strides` over `dims`
  };
  struct Input {
    uint32_t slot = kNoSlot;
    ElementType type = ElementType::kUndefined;
    Broadcast broadcast = Broadcast::kDense;
    Dims dims, strides;  // kOther: dimensions of the result; strides in elements, 0 where the operand is broadcast
    int64_t start = 0;   // kOther: the element that the result's first element reads
  };
  struct Step {
    bool converts = false;  // a conversion; otherwise `op`
    kernels::ElementwiseOp op{};
    kernels::ElementwiseParams params;
    ElementType from = ElementType::kUndefined;  // type of the arguments (for Where: of the last two)
    ElementType to = ElementType::kUndefined;
    uint8_t argument_count = 0;
    // Below inputs.size(): an input; otherwise the result of an earlier step.
    uint16_t arguments[3] = {};
  };
  struct Output {
    uint16_t step = 0;
    uint32_t slot = kNoSlot;
  };
  // Reduces the middle axis of a step's result, seen as [outer, n, inner], in the order that kernels/reduce.h states.
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
  Lines lines;  // the lines of all reductions
};

// Sums and other reductions, in the order that kernels/reduce.h states.
struct ReductionCode {
  kernels::ReduceOp op{};
  uint32_t from = kNoSlot, to = kNoSlot;
  ElementType type = ElementType::kUndefined;
  bool columns = false;  // the innermost dimension is kept; otherwise it is reduced
  // The kept and the reduced dimensions, with neighbours of the same kind merged. The operand's innermost dimension is
  // the last one of its kind.
  Dims kept, kept_strides, reduced, reduced_strides;
};

// ArgMax and ArgMin along the middle axis of [outer, n, inner]; the result is int64.
struct ArgReductionCode {
  uint32_t from = kNoSlot, to = kNoSlot;
  ElementType type = ElementType::kUndefined;
  int64_t outer = 0, n = 0, inner = 0;
  bool greatest = false, last = false;
};

// c[i] = alpha a[i] b[i] + beta bias for all matrices i of a stack, summed in the order that kernels/gemm.h states.
struct ProductCode {
  struct Level {
    int64_t size, a, b, c;  // strides between matrices
  };
  uint32_t a = kNoSlot, b = kNoSlot, bias = kNoSlot, c = kNoSlot;
  ElementType type = ElementType::kUndefined;    // of the sums
  ElementType stored = ElementType::kUndefined;  // of operands and result: `type`, or narrower floats
  kernels::GemmShape shape;
  int64_t a_count = 0, b_count = 0, bias_count = 0, c_count = 0;  // elements
  std::vector<Level> stack;                                       // outermost first
  kernels::GemmPanels panels;  // of a constant, packed b (KernelCode::packed); else without columns
};

// Moves elements of the operands, or constant bits, to the results.
struct MoveCode {
  struct Input {
    uint32_t slot = kNoSlot;
    int64_t count = 0;
  };
  struct Output {
    uint32_t slot = kNoSlot;
    // For element i of the result, the number of the element that it copies, counted through all inputs; n below 0
    // means constants[-1 - n].
    std::vector<int64_t> from;
  };
  // The same as copies between parts of operands, for code with loops.
  struct Region {
    uint32_t from = kNoSlot, to = kNoSlot;  // `from` kNoSlot: writes `bits` everywhere
    int64_t in_start = 0, out_start = 0;
    Dims dims, in_strides, out_strides;
    uint64_t bits = 0;
  };
  ElementType type = ElementType::kUndefined;
  bool is_listed = true;  // `outputs` are known: there are few elements
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<uint64_t> constants;
  std::vector<Region> regions;  // empty: unknown
};

// Slices of `data` as [outer, n, row] by `count` indices; the result is [outer, count, row]. Negative indices count
// from the end; indices may be out of range.
struct GatherCode {
  uint32_t data = kNoSlot, index = kNoSlot, to = kNoSlot;
  ElementType type = ElementType::kUndefined;
  bool wide = true;  // 64-bit indices; otherwise 32-bit
  int64_t outer = 0, n = 0, row = 0, count = 0;
};

using InstructionCode = std::variant<MoveCode, ReductionCode, ArgReductionCode, ProductCode, GatherCode>;

// At most one of the two is set. Neither is set if native code cannot compute with the elements, or if the instruction
// works on large constants.
struct KernelCode {
  std::optional<ElementwiseCode> elementwise;
  std::optional<InstructionCode> other;
  const void* packed = nullptr;  // the packed constant of a product with panels
};

inline const ElementwiseCode* elementwise_code(const Program& program, uint32_t pc) {
  const KernelCall* call = kernel_of(program, pc);
  return call && call->code && call->code->elementwise ? &*call->code->elementwise : nullptr;
}
inline const InstructionCode* other_code(const Program& program, uint32_t pc) {
  const KernelCall* call = kernel_of(program, pc);
  return call && call->code && call->code->other ? &*call->code->other : nullptr;
}

// The slots that the code names: operands of its call, or kNoSlot.
std::vector<uint32_t> slots_of(const KernelCode& code);

// The code of a group, from the forms of its nodes. Operands are `inputs`, then `outputs`, then the results of
// reductions.
struct ValueLists {
  std::span<const ir::Value* const> inputs, outputs;
};
class Fusion;
struct Unit;
std::shared_ptr<const KernelCode> code_of_group(const Fusion& fusion, const Unit& unit, const ValueLists& values,
                                                const KernelCall& call);
// The code of one node, whose preparation gave `form` and the call's kernel. Null: native code has to call the kernel.
// `plain`: also where kernels are as fast as native code, moves of elements that native code does not hold, and
// products of narrow floats.
std::shared_ptr<const KernelCode> code_of_node(const ir::Node& node, const ElementwiseForm& form,
                                               const KernelCall& call, bool plain);

}  // namespace treadle::plan
