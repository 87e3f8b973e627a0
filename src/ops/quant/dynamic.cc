// DynamicQuantizeLinear: scale and zero point from the range of the data, which is extended to 0.

#include "base/thread_pool.h"
#include "kernels/quantize.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "ops/costs.h"
#include "ops/quant/rows.h"

namespace treadle {

namespace {

Status infer_dynamic_quantize(InferContext& ctx) {
  if (const Shape* x = ctx.shape(0)) {
    ctx.set_output(0, ElementType::kUint8, *x);
  } else {
    ctx.set_output(0, ElementType::kUint8);
  }
  ctx.set_output(1, ElementType::kFloat, Shape());
  ctx.set_output(2, ElementType::kUint8, Shape());
  return {};
}

struct DynamicState {
  quant::QuantizeRows rows;
  size_t count = 0;
};

uint32_t run_dynamic_quantize(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const DynamicState*>(state);
  const void* x = slots[operands[0]];
  const auto [low, high] = s.rows.rows->range(static_cast<const float*>(x), s.count);
  // A tensor of zeros has no range; any scale is exact.
  const float scale = high == low ? 1.0f : (high - low) / 255.0f;
  const float one = 1, start = (0.0f - low) / scale;
  uint8_t zero = 0;
  s.rows(&start, {&one, nullptr, 0}, &zero, 1);
  const int32_t wide_zero = zero;
  if (void* y = slots[operands[1]]) {
    parallel_for(static_cast<int64_t>(s.count), costs::kDynamicQuantizedNs, [&](int64_t begin, int64_t end, int) {
      s.rows(static_cast<const float*>(x) + begin, {&scale, &wide_zero, 0}, static_cast<uint8_t*>(y) + begin,
             static_cast<size_t>(end - begin));
    });
  }
  if (void* y_scale = slots[operands[2]]) *static_cast<float*>(y_scale) = scale;
  if (void* y_zero = slots[operands[3]]) *static_cast<uint8_t*>(y_zero) = zero;
  return 0;
}

Status prepare_dynamic_quantize(PrepareContext& ctx) {
  auto* state = ctx.make_state<DynamicState>();
  const int64_t count = ctx.inputs[0].element_count();
  state->count = static_cast<size_t>(count);
  state->rows = quant::QuantizeRows(ElementType::kFloat, ElementType::kUint8, ElementType::kFloat, true);
  ctx.set_kernel(run_dynamic_quantize, state);
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(DynamicQuantizeLinear, "") {
  op.since(11)
      .in("x", "T1")
      .out("y", "T2")
      .out("y_scale", "tensor(float)")
      .out("y_zero_point", "T2")
      .type("T1", types::kFloat32s)
      .type("T2", types::kUint8s);
  op.infer(infer_dynamic_quantize).prepare(prepare_dynamic_quantize).no_axes("one scale is that of all elements");
}
