// ConvTransposeWithDynamicPads: ConvTranspose with pads as an input. It is lowered to PaddedConvTranspose, which has
// the pads behind the bias, where the code of convolutions looks for them.

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/registry.h"
#include "op/work.h"
#include "ops/fused/calls.h"
#include "ops/nn/conv.h"
#include "ops/nn/window.h"

namespace treadle::nn {

namespace {

// Input 3 of convolutions is an addend (ops/nn/conv.h), which these operators lack.
enum Input : size_t { kX, kW, kBias, kAddend, kPads };

bool has_pads(const ir::Attributes& attributes, bool given) {
  return given && attributes.get_string("auto_pad") == "NOTSET";
}

// Subtracts the pads from the sizes of output 0.
Status cut_sizes(InferContext& ctx) {
  Shape& y = ctx.outputs[0].shape;
  const size_t axes = y.size() - 2;
  const Dim count = length_of(ctx, kPads);
  if (differ(count, Dim(2 * static_cast<int64_t>(axes)))) {
    return error(Code::kInvalidArgument, "{} Pads, expected {}: two for each spatial axis", count.value(), 2 * axes);
  }
  const Tensor* pads = ctx.value(kPads);
  for (size_t i = 0; i < axes; ++i) {
    Dim& size = y[2 + i];
    if (!pads) {
      size = Dim();
      continue;
    }
    const int64_t begin = pads->int64_at(static_cast<int64_t>(i)), end = pads->int64_at(static_cast<int64_t>(axes + i));
    if (begin < 0 || end < 0) {
      return error(Code::kInvalidArgument, "Pads hold {}, expected 0 or more", std::min(begin, end));
    }
    size = size - Dim(begin + end);
    if (size.is_known() && size.value() < 0) {
      return error(Code::kInvalidArgument,
                   "the Pads of spatial axis {} are larger than the result by {}, expected at most its size", i,
                   -size.value());
    }
  }
  return {};
}

// ---- PaddedConvTranspose

Status infer_padded(InferContext& ctx) {
  TREADLE_TRY(require_op("ConvTranspose").infer(ctx));
  return ctx.outputs[0].has_shape && has_pads(ctx.attributes(), ctx.has_input(kPads)) ? cut_sizes(ctx) : Status();
}

Status prepare_padded(PrepareContext& ctx) {
  ir::Attributes attributes = ctx.attributes();
  if (has_pads(attributes, ctx.has_input(kPads))) {
    const Ints pads = ctx.int64s(kPads);
    attributes.set(ir::Attribute::of("pads", std::vector<int64_t>(pads.begin(), pads.end())));
  }
  const auto dims = [&](size_t i) -> const Dims& { return ctx.inputs[i].dims; };
  TREADLE_ASSIGN(const kernels::ConvShape shape, transposed_shape(attributes, dims(kX), dims(kW), ctx.outputs[0].dims));
  return prepare_conv(ctx, shape);
}

// ---- ConvTransposeWithDynamicPads: X, W, Pads, B

Status infer_dynamic_pads(InferContext& ctx) {
  const Type* operands[] = {ctx.inputs[0], ctx.inputs[1], nullptr, nullptr, nullptr};
  if (ctx.has_input(3)) operands[kBias] = ctx.inputs[3];
  if (ctx.has_input(2)) operands[kPads] = ctx.inputs[2];
  const Tensor* const values[] = {nullptr, nullptr, nullptr, nullptr, ctx.value(2)};
  InferContext ordered = ctx;
  ordered.inputs = operands;
  ordered.values = values;
  ordered.symbols = {};
  return infer_padded(ordered);
}

Status lower_dynamic_pads(LowerContext& ctx) {
  ctx.set_output(
      0, ctx.call("PaddedConvTranspose",
                  {ctx.input(0), ctx.input(1), fused::optional_input(ctx, 3), nullptr, fused::optional_input(ctx, 2)},
                  fused::all_attributes(ctx), "treadle"));
  return {};
}

Work transposed_work(const ir::Node& node) {
  return require_op("ConvTranspose").work(node);
}

void add_attributes(VersionBuilder& version) {
  version.attr("auto_pad", "NOTSET")
      .optional("dilations", ir::AttributeKind::kInts)
      .attr("group", 1)
      .optional("kernel_shape", ir::AttributeKind::kInts)
      .optional("output_padding", ir::AttributeKind::kInts)
      .optional("strides", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
}

}  // namespace

}  // namespace treadle::nn

TREADLE_OP(PaddedConvTranspose, "treadle") {
  op.since(1)
      .in("X", "T")
      .in("W", "T")
      .in("B", "T", Arity::kOptional)
      .in("Z", "T", Arity::kOptional)
      .in("Pads", "tensor(int64)", Arity::kOptional)
      .out("Y", "T")
      .with(nn::add_attributes);
  op.infer(nn::infer_padded)
      .prepare(nn::prepare_padded)
      .shape_inputs({4})
      .axes(axes::entries)
      .work(nn::transposed_work);
}

TREADLE_OP(ConvTransposeWithDynamicPads, "com.microsoft") {
  op.since(1)
      .in("X", "T")
      .in("W", "T")
      .in("Pads", "tensor(int64)", Arity::kOptional)
      .in("B", "T", Arity::kOptional)
      .out("Y", "T")
      .with(nn::add_attributes);
  op.infer(nn::infer_dynamic_pads)
      .lower(nn::lower_dynamic_pads)
      .can_fail()
      .axes(axes::entries)
      .work(nn::transposed_work);
}
