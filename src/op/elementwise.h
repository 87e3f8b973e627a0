#pragma once
// What elementwise operators share: inference over broadcasting, and preparation of kernels/elementwise.h.
//
// Before opset 7, binary operators broadcast only on request: attribute `broadcast` 1 aligns B's dimensions with A's
// from `axis` on (default: the last ones), and the result has A's shape. The functions below follow the attributes
// wherever a node has them.

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

// Symbolic contents of an integer result, element by element; unknown elements are fine.
using DimFn = Dim (*)(const Dim& a, const Dim& b);
void infer_symbols(InferContext& ctx, DimFn fn);
// Whether `ctx` may want the symbolic contents of output 0: an integer or bool tensor of at most one dimension.
bool wants_small_symbols(const InferContext& ctx);
// The contents of input i as Dims, bool as 0 and 1; nullopt when unknown or longer than shapes get.
std::optional<Shape> small_dims(const InferContext& ctx, size_t i);

// Inference of a binary operator that shape arithmetic runs through.
template <DimFn kFn>
Status infer_arithmetic(InferContext& ctx) {
  TREADLE_TRY(infer_broadcast(ctx));
  infer_symbols(ctx, kFn);
  return {};
}

// ---- Preparation ----

// Strides of `operand` seen under the result's dimensions: 0 where it is broadcast. `axis` is the result's dimension
// that the operand's first one is aligned with; negative: numpy's rule.
Dims broadcast_strides(const Operand& operand, const Dims& result, int64_t axis = -1);
// Where the second operand begins under the rules before opset 7; -1 under numpy's.
int64_t legacy_axis(const PrepareContext& ctx);

// The kernel for `op` over all inputs of the node, whatever their strides. Sets ctx's kernel. `axis`: the result's
// dimension that the second operand's first one is aligned with; negative: numpy's rule.
Status prepare_elementwise(PrepareContext& ctx, kernels::ElementwiseOp op, const kernels::ElementwiseParams& params,
                           int64_t axis);
// The same by the node's own rule of alignment.
Status prepare_elementwise(PrepareContext& ctx, kernels::ElementwiseOp op,
                           const kernels::ElementwiseParams& params = {});

template <kernels::ElementwiseOp kOp>
Status prepare_elementwise(PrepareContext& ctx) {
  return prepare_elementwise(ctx, kOp);
}
// Operations with a parameter that is the float attribute `alpha`.
template <kernels::ElementwiseOp kOp>
Status prepare_with_alpha(PrepareContext& ctx) {
  return prepare_elementwise(ctx, kOp, {.alpha = ctx.attributes().get_float("alpha")});
}

struct CopiedRegion;
struct Moves;
struct StackedGemm;

// What a node computes, apart from any kernel: for who runs several elementwise nodes as one (plan/fusion.h) and for
// who writes code of its own (plan/native.h). Asked for by PrepareContext::form; operators that cannot say leave it
// kNone. What is pointed to lies in the arena of the PrepareContext.
struct ElementwiseForm {
  enum class Kind : uint8_t { kNone, kOperation, kConversion, kReduction, kArgReduction, kProduct, kMoves, kGather };
  Kind kind = Kind::kNone;
  kernels::ElementwiseOp op{};
  kernels::ElementwiseParams params;
  int64_t axis = -1;                 // as prepare_elementwise takes it
  uint8_t arguments[3] = {0, 1, 2};  // inputs of the node, in the operation's order
  kernels::TileConverter converter;  // kConversion: of input 0
  // kReduction: of input 0.
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
  // kProduct: of inputs 0 and 1 in the type that they are stored in, input 2 being the bias.
  const StackedGemm* product = nullptr;
  // kMoves: of the results.
  std::shared_ptr<const Moves> moves;
  // Input 0 seen otherwise, and nothing else: the element at index i of the result is the operand's element of number
  // start + sum(i * strides), in row-major order. Whatever the kind.
  struct View {
    int64_t start = 0;
    Dims strides;
  };
  std::optional<View> view;
  // The copies that make the results, whatever the kind. Null: they are not known.
  std::shared_ptr<const std::vector<CopiedRegion>> regions;
};

// use(form) for what a node of known sizes computes.
void with_form(const ir::Node& node, const std::function<void(const ElementwiseForm&)>& use);
// The same where operands and result have the given sizes.
void with_form(const ir::Node& node, std::span<const Operand> inputs, const Operand& result,
               const std::function<void(const ElementwiseForm&)>& use);

// What a node of known sizes computes; kNone where it takes more than an operation of one type.
ElementwiseForm elementwise_form(const ir::Node& node);
// Of what a node computes, that which elementwise_form says.
ElementwiseForm in_one_type(const ElementwiseForm& form, const ir::Node& node);

// Whether elements are computed with as they are stored, so that steps on their own round as often as all in one
// kernel.
inline bool is_stored_as_computed(ElementType type) {
  return compute_type(type) != ComputeType::kNone && wide_type(type) == type;
}

// A kernel that does `op` on two elements (one for Not and Neg) in a few instructions; null where there is none.
// Loop counters and conditions live on these.
KernelFn single_element_kernel(kernels::ElementwiseOp op, ElementType type);

}  // namespace treadle
