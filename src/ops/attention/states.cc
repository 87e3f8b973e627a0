// LinearAttention and CausalConvWithState of com.microsoft, which have attributes that the standard's operators lack.
// Lowered to the standard's operators if these attributes have the values that the standard implies.

#include <array>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/registry.h"
#include "ops/fused/calls.h"

namespace treadle::attention {

namespace {

// Checks that an attribute has the only supported value.
Status only(const InferContext& ctx, const char* name, int64_t value) {
  const int64_t given = ctx.attributes().get_int(name, value);
  if (given == value) return {};
  return error(Code::kNotImplemented, "attribute {} is {}: only {} is run", name, given, value);
}

Status infer_linear(InferContext& ctx) {
  TREADLE_TRY(only(ctx, "state_window", 0));
  return require_op("LinearAttention", "").infer(ctx);
}

Status infer_causal(InferContext& ctx) {
  TREADLE_TRY(only(ctx, "channels_last", 0));
  TREADLE_TRY(only(ctx, "dilation", 1));
  TREADLE_TRY(only(ctx, "ndim", 1));
  TREADLE_TRY(only(ctx, "state_window", 0));
  return require_op("CausalConvWithState", "").infer(ctx);
}

void become(LowerContext& ctx, std::string_view op, size_t inputs, std::vector<ir::Attribute> attributes) {
  std::vector<ir::Value*> values;
  for (size_t i = 0; i < inputs; ++i) values.push_back(fused::optional_input(ctx, i));
  const ir::Node* node = ctx.node(op, values, 2, std::move(attributes));
  ctx.set_output(0, node->outputs[0]);
  ctx.set_output(1, node->outputs[1]);
}

Status lower_linear(LowerContext& ctx) {
  const auto& given = ctx.attributes();
  std::vector<ir::Attribute> attributes{ir::Attribute::of("scale", given.get_float("scale")),
                                        ir::Attribute::of("update_rule", std::string(given.get_string("update_rule")))};
  for (const char* heads : {"q_num_heads", "kv_num_heads"}) {
    attributes.push_back(ir::Attribute::of(heads, given.get_int(heads)));
  }
  become(ctx, "LinearAttention", 6, std::move(attributes));
  return {};
}

Status lower_causal(LowerContext& ctx) {
  become(ctx, "CausalConvWithState", 4,
         {ir::Attribute::of("activation", std::string(ctx.attributes().get_string("activation")))});
  return {};
}

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(LinearAttention, "com.microsoft") {
  op.since(1)
      .in("query", "T")
      .in("key", "T")
      .in("value", "T")
      .in("past_state", "S", Arity::kOptional)
      .in("decay", "T", Arity::kOptional)
      .in("beta", "T", Arity::kOptional)
      .out("output", "T")
      .out("present_state", "S")
      .attr("chunk_size", 64)
      .required("kv_num_heads", ir::AttributeKind::kInt)
      .required("q_num_heads", ir::AttributeKind::kInt)
      .attr("scale", 0.0)
      .attr("state_window", 0)
      .attr("update_rule", "gated_delta")
      .type("T", types::kFloatsTo32)
      .type("S", types::kFloatsTo32);
  op.infer(attention::infer_linear).lower(attention::lower_linear).axes(axes::entries_of<0b111111>);
}

TREADLE_OP(CausalConvWithState, "com.microsoft") {
  op.since(1)
      .in("input", "T")
      .in("weight", "T")
      .in("bias", "T", Arity::kOptional)
      .in("past_state", "T", Arity::kOptional)
      .out("output", "T")
      .out("present_state", "T")
      .attr("activation", "none")
      .attr("channels_last", 0)
      .attr("dilation", 1)
      .attr("ndim", 1)
      .attr("state_window", 0)
      .type("T", types::kFloatsTo32);
  op.infer(attention::infer_causal).lower(attention::lower_causal).axes(axes::entries_of<0b1001>);
}
