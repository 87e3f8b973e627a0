// QuantizeLinear and DequantizeLinear: scales per tensor, along an axis, or by blocks of an axis.

#include <algorithm>

#include "op/axis.h"
#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "ops/costs.h"
#include "ops/quant/rows.h"
#include "ops/quant/scale_layout.h"

namespace treadle {

namespace {

Status scale_error(std::string_view what, const Shape& scale, const Shape& x) {
  return error(Code::kInvalidArgument, "the scale has shape {}, expected one that fits {} of shape {}",
               to_string(scale), what, to_string(x));
}

bool unlike(const Shape& a, const Shape& b) {
  bool found = a.size() != b.size();
  for (size_t i = 0; !found && i < a.size(); ++i) found = differ(a[i], b[i]);
  return found;
}

// Whether the shape has one element, or may have.
bool may_be_single(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return !differ(d, Dim(1)); });
}

// Checks the shapes of scale and zero point against x.
Status check_scale(const InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  const Shape* scale = ctx.shape(1);
  const Shape* zero = ctx.shape(2);
  if (scale && zero && unlike(*scale, *zero) && !(may_be_single(*scale) && may_be_single(*zero))) {
    return error(Code::kInvalidArgument, "the zero point has shape {}, expected that of the scale, {}",
                 to_string(*zero), to_string(*scale));
  }
  if (!x || !scale || scale->empty() || element_count(*scale).is_known(1)) return {};
  const int64_t block = ctx.attributes().get_int("block_size");
  if (block == 0 && scale->size() != 1) return scale_error("per-axis quantisation", *scale, *x);
  TREADLE_ASSIGN(const int64_t axis,
                 normalize_axis(ctx.attributes().get_int("axis", 1), static_cast<int64_t>(x->size())));
  const auto at = static_cast<size_t>(axis);
  if (block == 0) {
    return differ((*scale)[0], (*x)[at]) ? scale_error("the axis", *scale, *x) : Status();
  }
  if (block < 0) return error(Code::kInvalidModel, "attribute block_size is {}, expected at least 0", block);
  if (scale->size() != x->size()) return scale_error("blocks", *scale, *x);
  for (size_t d = 0; d < x->size(); ++d) {
    const Dim expected = d == at ? ceil_div((*x)[d], Dim(block)) : (*x)[d];
    if (differ((*scale)[d], expected)) return scale_error("blocks", *scale, *x);
  }
  return {};
}

Status set_type(InferContext& ctx, ElementType element) {
  TREADLE_TRY(check_scale(ctx));
  if (const Shape* x = ctx.shape(0)) {
    ctx.set_output(0, element, *x);
  } else {
    ctx.set_output(0, element);
  }
  return {};
}

// Calls fn(first element, elements, scale index, scale step) for each row until it returns false. Returns whether it
// never did.
template <class Fn>
bool for_each_row(const quant::ScaleLayout& layout, Fn&& fn) {
  const auto [outer, n, inner] = layout.view;
  if (layout.block != 0) {
    const size_t blocks = layout.blocks();
    for (size_t o = 0; o < outer; ++o) {
      if (inner == 1) {
        for (size_t b = 0; b < blocks; ++b) {
          const size_t k = b * layout.block;
          if (!fn(o * n + k, std::min(layout.block, n - k), o * blocks + b, 0)) return false;
        }
      } else {
        for (size_t k = 0; k < n; ++k) {
          if (!fn((o * n + k) * inner, inner, (o * blocks + k / layout.block) * inner, 1)) return false;
        }
      }
    }
  } else if (!layout.per_axis) {
    return fn(0, outer * n * inner, 0, 0);
  } else if (inner == 1) {
    for (size_t o = 0; o < outer; ++o) {
      if (!fn(o * n, n, 0, 1)) return false;
    }
  } else {
    for (size_t o = 0; o < outer; ++o) {
      for (size_t k = 0; k < n; ++k) {
        if (!fn((o * n + k) * inner, inner, k, 0)) return false;
      }
    }
  }
  return true;
}

// ---------------------------------------------------------------------------------------------------------------------

template <class Rows>
struct State {
  quant::ScaleLayout layout;
  Rows rows;
  WideOperand scale, zero;  // to float and int32
  bool has_zero = false;
  uint32_t output = 0;  // operand number of the result; scratch follows
};

template <class Rows>
uint32_t run(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const State<Rows>*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[s.output + 1]]);
  const auto* scale = static_cast<const float*>(s.scale.get(slots[operands[1]], scratch));
  const auto* zero = s.has_zero ? static_cast<const int32_t*>(s.zero.get(slots[operands[2]], scratch)) : nullptr;
  const auto* x = static_cast<const std::byte*>(slots[operands[0]]);
  auto* out = static_cast<std::byte*>(slots[operands[s.output]]);
  StopPoll stop;
  return unless_stopped(for_each_row(s.layout, [&](size_t first, size_t count, size_t at, size_t step) {
    return in_pieces(static_cast<int64_t>(count), costs::kQuantizedElementNs, stop, [&](int64_t begin, int64_t end) {
      const size_t start = first + static_cast<size_t>(begin), scaled = at + static_cast<size_t>(begin) * step;
      const quant::RowScale row{scale + scaled, zero ? zero + scaled : nullptr, step};
      s.rows(x + start * s.rows.x_width, row, out + start * s.rows.out_width, static_cast<size_t>(end - begin));
    });
  }));
}

// `quantized`: the type of the zero point; for floats it is always 0.
template <class Rows>
Status prepare(PrepareContext& ctx, Rows rows, ElementType quantized) {
  auto* state = ctx.make_state<State<Rows>>();
  ScratchLayout scratch;
  state->rows = rows;
  TREADLE_ASSIGN(state->layout,
                 quant::scale_layout(ctx.attributes(), ctx.inputs[0].dims, ctx.inputs[1].element_count()));
  TREADLE_TRY(state->scale.prepare(ctx.inputs[1], ElementType::kFloat, scratch));
  state->has_zero = ctx.has_input(2) && is_integer(quantized);
  if (state->has_zero) TREADLE_TRY(state->zero.prepare(ctx.inputs[2], ElementType::kInt32, scratch));
  state->output = static_cast<uint32_t>(ctx.inputs.size());
  ctx.scratch_bytes = scratch.size() + 64;
  ctx.set_kernel(run<Rows>, state);
  return {};
}

// The type that an attribute names; kUndefined for none.
ElementType attribute_type(const ir::Attributes& attributes, const char* name) {
  return element_type_from_number(attributes.get_int(name));
}

Status infer_quantize(InferContext& ctx) {
  const ElementType named = attribute_type(ctx.attributes(), "output_dtype");
  const ElementType zero = ctx.element(2);
  if (named != ElementType::kUndefined && zero != ElementType::kUndefined && named != zero) {
    return error(Code::kInvalidModel, "attribute output_dtype is {}, expected the type of the zero point, {}",
                 name(named), name(zero));
  }
  const TypeConstraint* allowed = ctx.node.version->constraint(ctx.node.version->outputs[0].type);
  if (named != ElementType::kUndefined && allowed && !allowed->types.tensor.contains(named)) {
    return error(Code::kInvalidModel, "attribute output_dtype is {}, expected a type that y may have", name(named));
  }
  if (zero != ElementType::kUndefined) return set_type(ctx, zero);
  return set_type(ctx, named != ElementType::kUndefined ? named : ElementType::kUint8);
}

Status prepare_quantize(PrepareContext& ctx) {
  const auto& attributes = ctx.attributes();
  const ElementType to = ctx.outputs[0].type;
  const ElementType precision = quant::precision_of_division(attributes, ctx.inputs[1].type);
  return prepare(ctx, quant::QuantizeRows(ctx.inputs[0].type, to, precision, attributes.get_int("saturate", 1) != 0),
                 to);
}

Status infer_dequantize(InferContext& ctx) {
  const ElementType named = attribute_type(ctx.attributes(), "output_dtype");
  if (named != ElementType::kUndefined) return set_type(ctx, named);
  return set_type(ctx, ctx.version() < 19 ? ElementType::kFloat : ctx.element(1));
}

Status infer_dequantized_weights(InferContext& ctx) {
  return set_type(ctx, ElementType::kFloat);
}

Status prepare_dequantize(PrepareContext& ctx) {
  const ElementType from = ctx.inputs[0].type;
  return prepare(ctx, quant::DequantizeRows(from, ctx.outputs[0].type), from);
}

Status scaled_axes(AxisContext& c) {
  TREADLE_TRY(axes::only_first(c));
  const bool in_blocks = c.rank(1) > 1 && !c.size(1, c.in(0)).is_known(1);
  if (!c.is_single(1) && (in_blocks || c.axis(c.rank(0), 1) == c.in(0))) return looks_along("its scales run along it");
  return c.give(0, c.in(0));
}

Status widen_scaled(WidenContext& c) {
  if (c.rank(1) > 1) return looks_along("its scales have axes of their own");
  return c.node().version->attribute("axis") ? axes::shift_axis(c) : axes::unchanged(c);
}

}  // namespace

}  // namespace treadle

TREADLE_OP(DequantizeLinear, "") {
  op.since(10)
      .in("x", "T")
      .in("x_scale", "tensor(float)")
      .in("x_zero_point", "T", Arity::kOptional)
      .out("y", "tensor(float)")
      .type("T", tensors(ElementType::kUint8, ElementType::kInt8, ElementType::kInt32));
  op.since(13).attr("axis", 1);
  op.since(19)
      .in("x", "T1")
      .in("x_scale", "T2")
      .in("x_zero_point", "T1", Arity::kOptional)
      .out("y", "T2")
      .drop_type("T")
      .type("T1", tensors(ElementType::kUint8, ElementType::kInt8, ElementType::kInt32, ElementType::kFloat8e4m3fn,
                          ElementType::kFloat8e4m3fnuz, ElementType::kFloat8e5m2, ElementType::kFloat8e5m2fnuz))
      .type("T2", types::kFloatsTo32);
  op.since(21)
      .attr("block_size", 0)
      .type("T1",
            tensors(ElementType::kUint8, ElementType::kInt8, ElementType::kUint16, ElementType::kInt16,
                    ElementType::kInt32, ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz,
                    ElementType::kFloat8e5m2, ElementType::kFloat8e5m2fnuz, ElementType::kUint4, ElementType::kInt4));
  op.since(23)
      .out("y", "T3")
      .attr("output_dtype", 0)
      .type("T1", tensors(ElementType::kUint8, ElementType::kInt8, ElementType::kUint16, ElementType::kInt16,
                          ElementType::kInt32, ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz,
                          ElementType::kFloat8e5m2, ElementType::kFloat8e5m2fnuz, ElementType::kUint4,
                          ElementType::kInt4, ElementType::kFloat4e2m1))
      .type("T3", types::kFloatsTo32);
  op.since(24).type(
      "T2", tensors(ElementType::kFloat, ElementType::kFloat16, ElementType::kBfloat16, ElementType::kFloat8e8m0));
  op.since(25).type(
      "T1", tensors(ElementType::kUint8, ElementType::kInt8, ElementType::kUint16, ElementType::kInt16,
                    ElementType::kInt32, ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz,
                    ElementType::kFloat8e5m2, ElementType::kFloat8e5m2fnuz, ElementType::kUint4, ElementType::kInt4,
                    ElementType::kFloat4e2m1, ElementType::kUint2, ElementType::kInt2));
  op.since(28).type("T1", tensors(ElementType::kUint8, ElementType::kInt8, ElementType::kUint16, ElementType::kInt16,
                                  ElementType::kInt32, ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz,
                                  ElementType::kFloat8e5m2, ElementType::kFloat8e5m2fnuz, ElementType::kUint4,
                                  ElementType::kInt4, ElementType::kFloat4e2m1, ElementType::kUint2, ElementType::kInt2,
                                  ElementType::kFloat6e2m3, ElementType::kFloat6e3m2));
  op.infer(infer_dequantize).prepare(prepare_dequantize).axes(scaled_axes, widen_scaled);
}

// Made by opt::keep_byte_weights from constant bytes that are dequantised. The weights stay bytes until planning knows
// which products read them.
TREADLE_OP(DequantizedWeights, "treadle") {
  op.since(1)
      .in("x", "T")
      .in("x_scale", "tensor(float)")
      .in("x_zero_point", "T", Arity::kOptional)
      .out("y", "tensor(float)")
      .attr("axis", 1)
      .type("T", types::kBytes);
  op.infer(infer_dequantized_weights).prepare(prepare_dequantize).axes(scaled_axes).stays();
}

TREADLE_OP(QuantizeLinear, "") {
  op.since(10)
      .in("x", "T1")
      .in("y_scale", "tensor(float)")
      .in("y_zero_point", "T2", Arity::kOptional)
      .out("y", "T2")
      .type("T1", tensors(ElementType::kFloat, ElementType::kInt32))
      .type("T2", types::kBytes);
  op.since(13).attr("axis", 1);
  op.since(19)
      .in("y_scale", "T1")
      .attr("saturate", 1)
      .type("T1", tensors(ElementType::kFloat, ElementType::kInt32, ElementType::kFloat16, ElementType::kBfloat16))
      .type("T2", tensors(ElementType::kUint8, ElementType::kInt8, ElementType::kFloat8e4m3fn,
                          ElementType::kFloat8e4m3fnuz, ElementType::kFloat8e5m2, ElementType::kFloat8e5m2fnuz));
  op.since(21)
      .attr("block_size", 0)
      .attr("output_dtype", 0)
      .type("T2", tensors(ElementType::kUint8, ElementType::kInt8, ElementType::kUint16, ElementType::kInt16,
                          ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz, ElementType::kFloat8e5m2,
                          ElementType::kFloat8e5m2fnuz, ElementType::kUint4, ElementType::kInt4));
  op.since(23)
      .in("y_scale", "T2")
      .in("y_zero_point", "T3", Arity::kOptional)
      .out("y", "T3")
      .attr("precision", 0)
      .type("T2", tensors(ElementType::kFloat, ElementType::kInt32, ElementType::kFloat16, ElementType::kBfloat16))
      .type("T3",
            tensors(ElementType::kUint8, ElementType::kInt8, ElementType::kUint16, ElementType::kInt16,
                    ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz, ElementType::kFloat8e5m2,
                    ElementType::kFloat8e5m2fnuz, ElementType::kUint4, ElementType::kInt4, ElementType::kFloat4e2m1));
  op.since(24).type("T2", tensors(ElementType::kFloat, ElementType::kInt32, ElementType::kFloat16,
                                  ElementType::kBfloat16, ElementType::kFloat8e8m0));
  op.since(25).type("T3", tensors(ElementType::kUint8, ElementType::kInt8, ElementType::kUint16, ElementType::kInt16,
                                  ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz, ElementType::kFloat8e5m2,
                                  ElementType::kFloat8e5m2fnuz, ElementType::kUint4, ElementType::kInt4,
                                  ElementType::kFloat4e2m1, ElementType::kUint2, ElementType::kInt2));
  op.since(28).type(
      "T3", tensors(ElementType::kUint8, ElementType::kInt8, ElementType::kUint16, ElementType::kInt16,
                    ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz, ElementType::kFloat8e5m2,
                    ElementType::kFloat8e5m2fnuz, ElementType::kUint4, ElementType::kInt4, ElementType::kFloat4e2m1,
                    ElementType::kUint2, ElementType::kInt2, ElementType::kFloat6e2m3, ElementType::kFloat6e3m2));
  op.infer(infer_quantize).prepare(prepare_quantize).axes(scaled_axes, widen_scaled);
}
