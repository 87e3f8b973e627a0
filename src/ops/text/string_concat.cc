// StringConcat: concatenates strings element by element, with broadcasting.

#include <string>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/text_kernel.h"

namespace treadle::text {

namespace {

Status infer_string_concat(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  const Shape* y = ctx.shape(1);
  if (!x || !y) return ctx.set_output(0, ElementType::kString), Status();
  auto both = broadcast(*x, *y);
  if (!both.ok()) return error(Code::kInvalidArgument, "X and Y: {}", std::move(both).status().message());
  Shape z = std::move(both).value();
  ctx.set_output(0, ElementType::kString, std::move(z));
  return {};
}

size_t concat(String& out, const String& left, const String& right) {
  out.reserve(left.size() + right.size());
  out = left;
  out += right;
  return out.size();
}

Status compute_string_concat(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  const Tensor& y = ctx.tensor(1);
  TREADLE_ASSIGN(const Dims dims, broadcast_dims(x.dims(), y.dims()));
  TREADLE_ASSIGN(Tensor * z, ctx.allocate(0, ElementType::kString, dims));
  const auto* left = x.data<String>();
  const auto* right = y.data<String>();
  auto* out = z->mutable_data<String>();
  const Dims strides[] = {broadcast_strides(x.dims(), dims), broadcast_strides(y.dims(), dims)};
  return for_each_broadcast(
      dims, strides, [&](int64_t i, const int64_t* at) { return text_ns(concat(out[i], left[at[0]], right[at[1]])); });
}

struct AnyTexts {};

uint32_t run_dynamic_concat(const AnyTexts&, DynamicCall& call) {
  const String *left = texts_of(call.inputs[0]), *right = texts_of(call.inputs[1]);
  return make_spread<String, 2>(call,
                                [&](String& out, const int64_t* at) { return concat(out, left[at[0]], right[at[1]]); });
}

DynamicKernel dynamic_concat(const DynamicContext& c) {
  return dynamic_kernel<AnyTexts, run_dynamic_concat>(c);
}

}  // namespace

}  // namespace treadle::text

TREADLE_OP(StringConcat, "") {
  op.since(20).in("X", "T").in("Y", "T").out("Z", "T").type("T", tensors(ElementType::kString));
  op.infer(text::infer_string_concat)
      .compute(text::compute_string_concat)
      .dynamic_texts(text::dynamic_concat)
      .axes(axes::broadcast, axes::aligned);
}
