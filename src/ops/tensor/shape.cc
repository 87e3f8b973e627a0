#include <algorithm>
#include <cstring>

#include "op/dynamic_kernel.h"
#include "op/op_def.h"
#include "op/operands.h"

namespace treadle {
namespace {

// The axes that Shape reports: [first, second).
std::pair<int64_t, int64_t> axis_range(const ir::Attributes& attributes, int64_t rank) {
  auto clamp = [rank](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  const int64_t start = clamp(attributes.get_int("start", 0));
  return {start, std::max(start, clamp(attributes.get_int("end", rank)))};
}

Status infer_shape(InferContext& c) {
  const Shape* shape = c.shape(0);
  if (!shape) {
    c.set_output(0, ElementType::kInt64, {Dim::unknown()});
    return {};
  }
  const auto [start, end] = axis_range(c.attributes(), static_cast<int64_t>(shape->size()));
  c.set_output(0, ElementType::kInt64, {Dim(end - start)});
  if (c.wants_symbols(0)) c.set_output_symbols(0, Shape(shape->begin() + start, shape->begin() + end));
  return {};
}

Status infer_size(InferContext& c) {
  c.set_output(0, ElementType::kInt64, {});
  if (const Shape* shape = c.shape(0); shape && c.wants_symbols(0)) c.set_output_symbols(0, {element_count(*shape)});
  return {};
}

uint32_t run_write(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& values = *static_cast<const Ints*>(state);
  if (!values.empty()) std::memcpy(slots[operands[1]], values.data(), values.size() * sizeof(int64_t));
  return 0;
}

Status prepare_shape(PrepareContext& c) {
  const Dims& dims = c.inputs[0].dims;
  const auto [start, end] = axis_range(c.attributes(), c.inputs[0].rank());
  c.set_kernel(run_write, c.make_state<Ints>(dims.begin() + start, dims.begin() + end));
  return {};
}

Status prepare_size(PrepareContext& c) {
  c.set_kernel(run_write, c.make_state<Ints>(Ints{c.inputs[0].element_count()}));
  return {};
}

Status compute_shape(ComputeContext& c) {
  const Dims& dims = c.tensor(0).dims();
  const auto [start, end] = axis_range(c.attributes(), c.tensor(0).rank());
  c.outputs[0] =
      AnyValue(Tensor::of_int64(dims.span().subspan(static_cast<size_t>(start), static_cast<size_t>(end - start))));
  return {};
}

Status compute_size(ComputeContext& c) {
  c.outputs[0] = AnyValue(Tensor::scalar(ElementType::kInt64, c.tensor(0).element_count()));
  return {};
}

struct DynamicShape {
  const ir::Attributes* attributes = nullptr;
};

uint32_t run_dynamic_shape(const DynamicShape& s, DynamicCall& call) {
  const auto [start, end] = axis_range(*s.attributes, call.inputs[0].rank());
  const int64_t dims[] = {end - start};
  auto* to = static_cast<int64_t*>(call.make(0, dims));
  if (!to) return kNotDynamic;
  std::copy(call.inputs[0].dims->begin() + start, call.inputs[0].dims->begin() + end, to);
  return 0;
}

uint32_t run_dynamic_size(const DynamicShape&, DynamicCall& call) {
  auto* to = static_cast<int64_t*>(call.make(0, {}));
  if (!to) return kNotDynamic;
  *to = call.inputs[0].count;
  return 0;
}

template <auto kRun>
DynamicKernel dynamic_sizes(const DynamicContext& c) {
  return dynamic_kernel<DynamicShape, kRun>(c, DynamicShape{&c.attributes()});
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Shape, "") {
  op.since(1).in("data", "T").out("shape", "T1").type("T", types::kAllTensors).type("T1", types::kInt64s);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.since(15).optional("end", ir::AttributeKind::kInt).attr("start", 0);
  op.since(19).type("T", types::kAllTensorsIr9);
  op.since(21).type("T", types::kAllTensorsIr10);
  op.since(23).type("T", types::kAllTensorsIr11);
  op.since(24).type("T", types::kAllTensorsIr12);
  op.since(25).type("T", types::kAllTensorsIr13);
  op.infer(infer_shape)
      .prepare(prepare_shape)
      .compute(compute_shape)
      .dynamic(dynamic_sizes<run_dynamic_shape>)
      .strided_inputs({0})
      .no_axes("it asks for sizes")
      .over_time(TimeRule::kSize);
}

TREADLE_OP(Size, "") {
  op.since(1).in("data", "T").out("size", "T1").type("T", types::kAllTensors).type("T1", types::kInt64s);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.since(19).type("T", types::kAllTensorsIr9);
  op.since(21).type("T", types::kAllTensorsIr10);
  op.since(23).type("T", types::kAllTensorsIr11);
  op.since(24).type("T", types::kAllTensorsIr12);
  op.since(25).type("T", types::kAllTensorsIr13);
  op.infer(infer_size)
      .prepare(prepare_size)
      .compute(compute_size)
      .dynamic(dynamic_sizes<run_dynamic_size>)
      .strided_inputs({0})
      .no_axes("it asks for sizes")
      .over_time(TimeRule::kSize);
}
