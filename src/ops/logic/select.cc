// Equal and Where, also for strings.

#include "op/elementwise_records.h"
#include "op/op_def.h"
#include "op/text_kernel.h"

namespace treadle {

namespace {

bool less(const Dim& a, const Dim& b) {
  const std::optional<int64_t> low = b.lower_bound();
  return a.is_known() && low && a.value() < *low;
}

// 1, 0 or unknown. Sizes are never negative, which decides the usual `shape == -1`.
Dim equal(const Dim& a, const Dim& b) {
  if (same(a, b)) return int64_t{1};
  if ((a.is_known() && b.is_known()) || less(a, b) || less(b, a)) return int64_t{0};
  return Dim::unknown();
}

Status infer_equal(InferContext& ctx) {
  TREADLE_TRY(infer_comparison(ctx));
  infer_symbols(ctx, equal);
  return {};
}

// Only for strings; prepare handles numbers.
Status compute_equal(ComputeContext& ctx) {
  const Tensor& a = ctx.tensor(0);
  const Tensor& b = ctx.tensor(1);
  TREADLE_ASSIGN(const Dims dims, broadcast_dims(a.dims(), b.dims()));
  TREADLE_ASSIGN(Tensor * out, ctx.allocate(0, ElementType::kBool, dims));
  bool* equal_at = out->mutable_data<bool>();
  const Dims strides[] = {broadcast_strides(a.dims(), dims), broadcast_strides(b.dims(), dims)};
  return for_each_broadcast(dims, strides, [&](int64_t i, const int64_t* at) {
    equal_at[i] = a.data<String>()[at[0]] == b.data<String>()[at[1]];
    return text_ns(a.data<String>()[at[0]]);
  });
  return {};
}

struct AnyTexts {};

uint32_t run_dynamic_equal(const AnyTexts&, DynamicCall& call) {
  const String *a = texts_of(call.inputs[0]), *b = texts_of(call.inputs[1]);
  return make_spread<bool, 2>(call, [&](bool& equal, const int64_t* at) {
    equal = a[at[0]] == b[at[1]];
    return a[at[0]].size();
  });
}

DynamicKernel dynamic_equal(const DynamicContext& c) {
  return dynamic_kernel<AnyTexts, run_dynamic_equal>(c);
}

// ---------------------------------------------------------------------------------------------------------------------

Status infer_where(InferContext& ctx) {
  TREADLE_TRY(infer_broadcast_as(ctx, ctx.element(1) == ElementType::kUndefined ? ctx.element(2) : ctx.element(1)));
  if (!wants_small_symbols(ctx)) return {};
  const std::optional<Shape> inputs[] = {small_dims(ctx, 0), small_dims(ctx, 1), small_dims(ctx, 2)};
  size_t count = 1;
  for (const auto& dims : inputs) {
    if (!dims) return {};
    if (dims->size() != 1) count = dims->size();
  }
  Shape out;
  for (size_t i = 0; i < count; ++i) {
    auto at = [&](size_t k) -> const Dim& { return (*inputs[k])[inputs[k]->size() == 1 ? 0 : i]; };
    const Dim& condition = at(0);
    if (condition.is_known()) {
      out.push_back(condition.value() != 0 ? at(1) : at(2));
    } else {
      out.push_back(same(at(1), at(2)) ? at(1) : Dim::unknown());
    }
  }
  ctx.set_output_symbols(0, std::move(out));
  return {};
}

template <class T>
uint32_t select_one(const void*, void* const* slots, const uint32_t* operands) {
  const bool condition = *static_cast<const uint8_t*>(slots[operands[0]]) != 0;
  *static_cast<T*>(slots[operands[3]]) = *static_cast<const T*>(slots[operands[condition ? 1 : 2]]);
  return 0;
}

Status prepare_where(PrepareContext& ctx) {
  if (ctx.outputs[0].element_count() == 1 && !ctx.form_only) {
    if (ctx.form) {
      ctx.form->kind = ElementwiseForm::Kind::kOperation;
      ctx.form->op = kernels::ElementwiseOp::kWhere;
    }
    switch (byte_width(ctx.outputs[0].type)) {
      case 1:
        return ctx.set_kernel(select_one<uint8_t>, nullptr), Status();
      case 4:
        return ctx.set_kernel(select_one<uint32_t>, nullptr), Status();
      case 8:
        return ctx.set_kernel(select_one<uint64_t>, nullptr), Status();
      default:
        break;
    }
  }
  return prepare_elementwise(ctx, kernels::ElementwiseOp::kWhere);
}

// Only for strings; prepare handles all else.
Status compute_where(ComputeContext& ctx) {
  const Tensor& condition = ctx.tensor(0);
  const Tensor& x = ctx.tensor(1);
  const Tensor& y = ctx.tensor(2);
  TREADLE_ASSIGN(const Dims values, broadcast_dims(x.dims(), y.dims()));
  TREADLE_ASSIGN(const Dims dims, broadcast_dims(condition.dims(), values));
  TREADLE_ASSIGN(Tensor * out, ctx.allocate(0, ElementType::kString, dims));
  const Dims strides[] = {broadcast_strides(condition.dims(), dims), broadcast_strides(x.dims(), dims),
                          broadcast_strides(y.dims(), dims)};
  auto* texts = out->mutable_data<String>();
  return for_each_broadcast(dims, strides, [&](int64_t i, const int64_t* at) {
    const bool first = condition.data<uint8_t>()[at[0]] != 0;
    texts[i] = first ? x.data<String>()[at[1]] : y.data<String>()[at[2]];
    return text_ns(texts[i]);
  });
}

uint32_t run_dynamic_where(const AnyTexts&, DynamicCall& call) {
  const auto* condition = static_cast<const uint8_t*>(call.inputs[0].data);
  const String *x = texts_of(call.inputs[1]), *y = texts_of(call.inputs[2]);
  return make_spread<String, 3>(call, [&](String& out, const int64_t* at) {
    out = condition[at[0]] != 0 ? x[at[1]] : y[at[2]];
    return out.size();
  });
}

DynamicKernel dynamic_where(const DynamicContext& c) {
  return dynamic_kernel<AnyTexts, run_dynamic_where>(c);
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Equal, "") {
  predicate_from_1_to_7(op, tensors(ElementType::kInt32, ElementType::kInt64, ElementType::kBool));
  op.since(11).type("T", types::kNumericBool);
  op.since(13).type("T", types::kNumericBoolBf16);
  op.since(19).type("T", types::kCastableIr4);
  op.infer(infer_equal)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kEqual>)
      .compute(compute_equal)
      .dynamic_texts(dynamic_equal)
      .strided_inputs({0, 1})
      .elementwise();
}

TREADLE_OP(Where, "") {
  op.since(9)
      .in("condition", "B")
      .in("X", "T")
      .in("Y", "T")
      .out("output", "T")
      .type("B", types::kBools)
      .type("T", types::kAllTensors);
  op.since(16).type("T", types::kAllTensorsIr4);
  op.infer(infer_where)
      .prepare(prepare_where)
      .compute(compute_where)
      .dynamic_texts(dynamic_where)
      .strided_inputs({0, 1, 2})
      .elementwise();
}
