#pragma once
// Shared code of elementwise operators: inference with broadcasting, and preparation of kernels/elementwise.h.
//
// Before opset 7, binary operators broadcast only on request: attribute `broadcast` 1 aligns B's dimensions with A's
// from `axis` on (default: the last ones), and the result has A's shape. The functions below follow these attributes if
// a node has them.

#include <functional>
#include <memory>
#include <optional>

#include "kernels/convert.h"
#include "kernels/elementwise.h"
#include "op/context.h"

namespace treadle::kernels {
struct ReducePlan;
}  // namespace treadle::kernels

namespace treadle {

// ---- Inference ----

// Output 0 has the type of input 0.
Status infer_like_input(InferContext& ctx);
// Output 0: input 0's shape, bool.
Status infer_predicate(InferContext& ctx);
// Output 0: all inputs broadcast, the element type of input 0.
Status infer_broadcast(InferContext& ctx);
// Output 0: all inputs broadcast, bool.
Status infer_comparison(InferContext& ctx);
// Output 0: all inputs broadcast.
Status infer_broadcast_as(InferContext& ctx, ElementType element);

// Symbolic contents of an integer result, element by element. Elements may be unknown.
using DimFn = Dim (*)(const Dim& a, const Dim& b);
void infer_symbols(InferContext& ctx, DimFn fn);
// Whether symbolic contents of output 0 may be of use: it is an integer or bool tensor of at most one dimension.
bool wants_small_symbols(const InferContext& ctx);
// The contents of input i as Dims, bools as 0 and 1; nullopt if unknown or longer than shapes are.
std::optional<Shape> small_dims(const InferContext& ctx, size_t i);

// Inference of a binary operator that is used for arithmetic on shapes.
template <DimFn kFn>
Status infer_arithmetic(InferContext& ctx) {
  TREADLE_TRY(infer_broadcast(ctx));
  infer_symbols(ctx, kFn);
  return {};
}

// ---- Preparation ----

// Strides of `operand` under the result's dimensions, 0 along broadcast ones. `axis`: the result's dimension that the
// operand's first one is aligned with; negative: numpy's rule.
Dims broadcast_strides(const Operand& operand, const Dims& result, int64_t axis = -1);
// The dimension at which the second operand begins under the rules before opset 7; -1 under numpy's.
int64_t legacy_axis(const PrepareContext& ctx);

// Prepares `op` over all inputs of the node, with any strides. Sets ctx's kernel. `axis`: the result's dimension that
// the second operand's first one is aligned with; negative: numpy's rule.
Status prepare_elementwise(PrepareContext& ctx, kernels::ElementwiseOp op, const kernels::ElementwiseParams& params,
                           int64_t axis);
// The same with the alignment that the node's attributes say.
Status prepare_elementwise(PrepareContext& ctx, kernels::ElementwiseOp op,
                           const kernels::ElementwiseParams& params = {});

template <kernels::ElementwiseOp kOp>
Status prepare_elementwise(PrepareContext& ctx) {
  return prepare_elementwise(ctx, kOp);
}
// For operations whose parameter is the float attribute `alpha`.
template <kernels::ElementwiseOp kOp>
Status prepare_with_alpha(PrepareContext& ctx) {
  return prepare_elementwise(ctx, kOp, {.alpha = ctx.attributes().get_float("alpha")});
}

struct CopiedRegion;
struct Moves;
struct StackedGemm;

// What a node computes, independent of any kernel. plan/fusion.h uses it to run several elementwise nodes as one,
// plan/native.h to generate code. PrepareContext::form asks for it; operators that cannot say leave it kNone. Pointers
// refer to memory in the arena of the PrepareContext.
struct ElementwiseForm {
  enum class Kind : uint8_t { kNone, kOperation, kConversion, kReduction, kArgReduction, kProduct, kMoves, kGather };
  Kind kind = Kind::kNone;
  kernels::ElementwiseOp op{};
  kernels::ElementwiseParams params;
  int64_t axis = -1;                 // as in prepare_elementwise()
  uint8_t arguments[3] = {0, 1, 2};  // inputs of the node, in the operation's order
  kernels::TileConverter converter;  // kConversion of input 0
  // kReduction of input 0.
  const kernels::ReducePlan* reduction = nullptr;
  // kArgReduction: positions along the middle axis of input 0 as [outer, n, inner].
  struct ArgReduction {
    int64_t outer = 0, n = 0, inner = 0;
    bool greatest = false, last = false;
  };
  ArgReduction arg_reduction;
  // kGather: slices of input 0 as [outer, n, row] by the `count` indices of input 1; the result is [outer, count, row].
  struct Gather {
    int64_t outer = 0, n = 0, row = 0, count = 0;
  };
  Gather gather;
  // kProduct: of inputs 0 and 1 in the type that they are stored in. Input 2 is the bias.
  const StackedGemm* product = nullptr;
  // kMoves: the elements of the results.
  std::shared_ptr<const Moves> moves;
  // Any kind: the result is a view of input 0. The result's element at index i is the operand's element number start +
  // sum(i * strides), in row-major order.
  struct View {
    int64_t start = 0;
    Dims strides;
  };
  std::optional<View> view;
  // Any kind: the copies that make the results. Null: unknown.
  std::shared_ptr<const std::vector<CopiedRegion>> regions;
};

// Calls `use` with the form of a node of known sizes.
void with_form(const ir::Node& node, const std::function<void(const ElementwiseForm&)>& use);
// The same for the given sizes of operands and result.
void with_form(const ir::Node& node, std::span<const Operand> inputs, const Operand& result,
               const std::function<void(const ElementwiseForm&)>& use);

// The form of a node of known sizes; kNone if it is not an operation of one type.
ElementwiseForm elementwise_form(const ir::Node& node);
// `form` as elementwise_form() returns it.
ElementwiseForm in_one_type(const ElementwiseForm& form, const ir::Node& node);

// Whether elements are computed in the type in which they are stored, so that separate steps round as often as one
// kernel.
inline bool is_stored_as_computed(ElementType type) {
  return compute_type(type) != ComputeType::kNone && wide_type(type) == type;
}

// A kernel that does `op` on two elements (one for Not and Neg) in a few instructions; null if there is none. For loop
// counters and conditions.
KernelFn single_element_kernel(kernels::ElementwiseOp op, ElementType type);

}  // namespace treadle
