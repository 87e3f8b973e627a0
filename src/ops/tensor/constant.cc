#include <algorithm>
#include <cstring>

#include "op/op_def.h"
#include "op/operands.h"

namespace treadle {
namespace {

constexpr int64_t kMaxSymbols = 64;  // contents of longer tensors are of no use to shapes

template <class T>
Result<Tensor> vector_of(ElementType type, std::span<const T> values) {
  TREADLE_ASSIGN(Tensor t, Tensor::allocate(type, {static_cast<int64_t>(values.size())}));
  using Element = std::conditional_t<std::is_same_v<T, std::string>, String, T>;
  std::copy(values.begin(), values.end(), t.mutable_data<Element>());
  return t;
}

Result<Tensor> constant_tensor(const ir::Attributes& attributes) {
  const ir::Attribute* found = nullptr;
  for (const char* name : {"value", "sparse_value", "value_float", "value_floats", "value_int", "value_ints",
                           "value_string", "value_strings"}) {
    const ir::Attribute* a = attributes.find(name);
    if (!a) continue;
    if (found) return error(Code::kInvalidModel, "expected one value, found attributes {} and {}", found->name, name);
    found = a;
  }
  if (!found) return error(Code::kInvalidModel, "expected one of the attributes value, value_float, ..., found none");
  switch (found->kind) {
    case ir::AttributeKind::kFloat:
      return Tensor::scalar(ElementType::kFloat, found->as_float());
    case ir::AttributeKind::kInt:
      return Tensor::scalar(ElementType::kInt64, found->as_int());
    case ir::AttributeKind::kString:
      return Tensor::scalar(found->as_string());
    case ir::AttributeKind::kFloats:
      return vector_of(ElementType::kFloat, found->as_floats());
    case ir::AttributeKind::kInts:
      return vector_of(ElementType::kInt64, found->as_ints());
    case ir::AttributeKind::kStrings:
      return vector_of(ElementType::kString, found->as_strings());
    default:
      return Tensor(found->as_tensor());
  }
}

Status infer_constant(InferContext& c) {
  TREADLE_ASSIGN(const Tensor t, constant_tensor(c.attributes()));
  c.set_output(0, t.type(), to_shape(t.dims()));
  if (!c.wants_symbols(0) || !is_integer(t.type()) || t.rank() > 1 || t.element_count() > kMaxSymbols) return {};
  Shape values;
  for (int64_t i = 0; i < t.element_count(); ++i) values.emplace_back(t.int64_at(i));
  c.set_output_symbols(0, std::move(values));
  return {};
}

uint32_t run_constant(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& t = *static_cast<const Tensor*>(state);
  if (t.byte_size()) std::memcpy(slots[operands[0]], t.raw(), t.byte_size());
  return 0;
}

Status prepare_constant(PrepareContext& c) {
  TREADLE_ASSIGN(Tensor t, constant_tensor(c.attributes()));
  c.set_kernel(run_constant, c.make_state<Tensor>(std::move(t)));
  return {};
}

Status compute_constant(ComputeContext& c) {
  TREADLE_ASSIGN(Tensor t, constant_tensor(c.attributes()));
  c.outputs[0] = AnyValue(std::move(t));
  return {};
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Constant, "") {
  op.since(1).out("output", "T").required("value", ir::AttributeKind::kTensor).type("T", types::kFloats);
  op.since(9).type("T", types::kAllTensors);
  op.since(11).optional("sparse_value", ir::AttributeKind::kSparseTensor).optional("value", ir::AttributeKind::kTensor);
  op.since(12)
      .optional("value_float", ir::AttributeKind::kFloat)
      .optional("value_floats", ir::AttributeKind::kFloats)
      .optional("value_int", ir::AttributeKind::kInt)
      .optional("value_ints", ir::AttributeKind::kInts)
      .optional("value_string", ir::AttributeKind::kString)
      .optional("value_strings", ir::AttributeKind::kStrings);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.since(19).type("T", types::kAllTensorsIr9);
  op.since(21).type("T", types::kAllTensorsIr10);
  op.since(23).type("T", types::kAllTensorsIr11);
  op.since(24).type("T", types::kAllTensorsIr12);
  op.since(25).type("T", types::kAllTensorsIr13);
  op.infer(infer_constant).prepare(prepare_constant).compute(compute_constant);
}
