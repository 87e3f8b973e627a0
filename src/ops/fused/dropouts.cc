// BiasDropout, BitmaskDropout, BitmaskBiasDropout: Dropout of a sum, with a mask of bits packed 32 to a word.

#include <array>

#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "type/make_tensor.h"

namespace treadle::fused {

namespace {

constexpr int64_t kWordBits = 32;

// Some of the operators have further inputs behind the data: a bias and a residual.
template <bool kBiased>
constexpr size_t kRatio = kBiased ? 3 : 1;

// Checks that an addend does not enlarge the data.
Status check_added(const InferContext& ctx, size_t i) {
  const Shape *x = ctx.shape(0), *added = ctx.shape(i);
  if (!x || !added) return {};
  bool fits = added->size() <= x->size();
  for (size_t d = 0; fits && d < added->size(); ++d) {
    const Dim& size = (*added)[d];
    fits = size.is_known(1) || !differ(size, (*x)[x->size() - added->size() + d]);
  }
  if (fits) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected one that broadcasts to data, {}",
               ctx.node.version->inputs[i].name, to_string(*added), to_string(*x));
}

template <bool kBiased, bool kPacked>
Status infer_dropout(InferContext& ctx) {
  if (const Tensor* ratio = ctx.value(kRatio<kBiased>); ratio && ratio->element_count() == 1) {
    const double value = ratio->double_at(0);
    if (!(value >= 0 && value < 1)) {
      return error(Code::kInvalidArgument, "ratio is {}, expected at least 0 and less than 1", value);
    }
  }
  if (kBiased) {
    for (const size_t i : {1, 2}) TREADLE_TRY(check_added(ctx, i));
  }
  ctx.set_output(0, ctx.input(0));
  if (ctx.outputs.size() < 2) return {};
  const Shape* x = ctx.shape(0);
  if (!kPacked) {
    Type mask = ctx.input(0);
    mask.element = ElementType::kBool;
    ctx.set_output(1, std::move(mask));
  } else if (x) {
    ctx.set_output(1, ElementType::kUint32, {floor_div(element_count(*x) + Dim(kWordBits - 1), Dim(kWordBits))});
  } else {
    ctx.set_output(1, ElementType::kUint32);
  }
  return {};
}

// Bit i of word w is element 32 w + i; bits behind the last element are 0.
ir::Value* packed(LowerContext& ctx, ir::Value* mask) {
  ir::Value* flat = ctx.call("Reshape", {mask, ctx.constant_int64s({-1})});
  flat = ctx.call("Cast", {flat}, {ir::Attribute::of("to", static_cast<int64_t>(ElementType::kUint32))});
  ir::Value* size = ctx.call("Shape", {flat});
  ir::Value* missing = ctx.call("Mod", {ctx.call("Neg", {size}), ctx.constant_int64(kWordBits)});
  ir::Value* pads =
      ctx.node("Concat", std::array{ctx.constant_int64s({0}), missing}, 1, {ir::Attribute::of("axis", int64_t{0})})
          ->outputs[0];
  ir::Value* words = ctx.call("Reshape", {ctx.call("Pad", {flat, pads}), ctx.constant_int64s({-1, kWordBits})});
  Tensor weights = make_tensor(ElementType::kUint32, {kWordBits});
  for (int64_t i = 0; i < kWordBits; ++i) weights.mutable_data<uint32_t>()[i] = uint32_t{1} << i;
  words = ctx.call("Mul", {words, ctx.constant(std::move(weights))});
  return ctx.call("ReduceSum", {words, ctx.constant_int64s({1})}, {ir::Attribute::of("keepdims", int64_t{0})});
}

template <bool kBiased, bool kPacked>
Status lower_dropout(LowerContext& ctx) {
  ir::Value* x = ctx.input(0);
  if (kBiased) x = ctx.call("Add", {x, ctx.input(1)});
  const auto optional = [&](size_t i) { return ctx.has_input(i) ? ctx.input(i) : nullptr; };
  std::vector<ir::Attribute> attributes;
  if (ctx.attributes().has("seed")) attributes.push_back(ir::Attribute::of("seed", ctx.attributes().get_int("seed")));
  ir::Node* dropped = ctx.node("Dropout", std::array{x, optional(kRatio<kBiased>), optional(kRatio<kBiased> + 1)}, 2,
                               std::move(attributes));
  ir::Value* result = dropped->outputs[0];
  if (kBiased && ctx.has_input(2)) result = ctx.call("Add", {result, ctx.input(2)});
  ctx.set_output(0, result);
  ctx.set_output(1, kPacked ? packed(ctx, dropped->outputs[1]) : dropped->outputs[1]);
  return {};
}

VersionBuilder& add_options(VersionBuilder& v) {
  return v.in("ratio", "T1", Arity::kOptional)
      .in("training_mode", "T2", Arity::kOptional)
      .optional("seed", ir::AttributeKind::kInt)
      .type("T", types::kFloatsBf16)
      .type("T1", types::kFloatsBf16)
      .type("T2", types::kBools);
}

constexpr const char* kPackedMask = "a word of its mask holds 32 elements of any axis";

}  // namespace

}  // namespace treadle::fused

TREADLE_OP(BiasDropout, "com.microsoft") {
  VersionBuilder v = op.since(1).in("data", "T").in("bias", "T").in("residual", "T", Arity::kOptional);
  fused::add_options(v).out("output", "T").out("mask", "T2", Arity::kOptional);
  op.infer(fused::infer_dropout<true, false>).lower(fused::lower_dropout<true, false>).random().axes(axes::broadcast);
}

TREADLE_OP(BitmaskDropout, "com.microsoft") {
  VersionBuilder v = op.since(1).in("data", "T");
  fused::add_options(v)
      .out("output", "T")
      .out("mask", "T3", Arity::kOptional)
      .type("T3", tensors(ElementType::kUint32));
  op.infer(fused::infer_dropout<false, true>)
      .lower(fused::lower_dropout<false, true>)
      .random()
      .no_axes(fused::kPackedMask);
}

TREADLE_OP(BitmaskBiasDropout, "com.microsoft") {
  VersionBuilder v = op.since(1).in("data", "T").in("bias", "T").in("residual", "T", Arity::kOptional);
  fused::add_options(v)
      .out("output", "T")
      .out("mask", "T3", Arity::kOptional)
      .type("T3", tensors(ElementType::kUint32));
  op.infer(fused::infer_dropout<true, true>)
      .lower(fused::lower_dropout<true, true>)
      .random()
      .no_axes(fused::kPackedMask);
}
