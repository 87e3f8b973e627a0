#include <algorithm>
#include <cstring>

#include "op/constant_value.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/small_contents.h"

namespace treadle {
namespace {

constexpr int64_t kMaxSymbols = 64;  // contents of longer tensors are of no use to shapes

Result<Tensor> constant_tensor(const ir::Attributes& attributes) {
  const ir::Attribute* found = nullptr;
  for (const auto& [name, kind] : kConstantAttributes) {
    const ir::Attribute* a = attributes.find(name);
    if (!a) continue;
    if (found) return error(Code::kInvalidModel, "expected one value, found attributes {} and {}", found->name, name);
    found = a;
  }
  if (!found) return error(Code::kInvalidModel, "expected one of the attributes value, value_float, ..., found none");
  return constant_value(*found);
}

Status infer_constant(InferContext& c) {
  TREADLE_ASSIGN(const Tensor t, constant_tensor(c.attributes()));
  c.set_output(0, t.type(), to_shape(t.dims()));
  if (!c.wants_symbols(0) || t.element_count() > kMaxSymbols) return {};
  if (auto values = dims_of(t)) c.set_output_symbols(0, std::move(*values));
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
  op.infer(infer_constant).prepare(prepare_constant).compute(compute_constant).no_axes("it has no operands");
}
