#include "op/lower.h"
#include "op/type_rules.h"
#include "reference/interpreter.h"

namespace treadle::reference {

namespace {

// Types and contents of the inputs, for inference and preparation.
struct InputViews {
  std::vector<Type> types;
  std::vector<const Type*> type_pointers;
  std::vector<const Tensor*> tensors;
  bool plain = true;  // numeric tensors only

  explicit InputViews(std::span<const AnyValue> inputs) {
    types.reserve(inputs.size());
    for (const AnyValue& v : inputs) types.push_back(v.type());
    for (size_t i = 0; i < inputs.size(); ++i) {
      type_pointers.push_back(inputs[i].is_none() ? nullptr : &types[i]);
      tensors.push_back(inputs[i].is_tensor() ? &inputs[i].tensor() : nullptr);
      plain &= inputs[i].is_none() || (inputs[i].is_tensor() && !is_string(inputs[i].tensor().type()));
    }
  }
};

Result<std::vector<Type>> infer(const ir::NodeInfo& node, const InputViews& views) {
  std::vector<Type> outputs(node.output_count);
  InferContext context{node, views.type_pointers, views.tensors, {}, outputs, {}, {}};
  TREADLE_TRY(node.op->infer(context));
  return outputs;
}

Operand operand_of(const Tensor& tensor) {
  return {tensor.type(), tensor.dims(), contiguous_strides(tensor.dims()), tensor.raw()};
}

Result<std::vector<AnyValue>> run_prepared(const ir::NodeInfo& node, const InputViews& views,
                                           std::span<const Type> types, std::span<const bool> wanted) {
  std::vector<Operand> in(views.tensors.size()), out(types.size());
  std::vector<void*> slots;
  for (size_t i = 0; i < in.size(); ++i) {
    if (views.tensors[i]) in[i] = operand_of(*views.tensors[i]);
    slots.push_back(views.tensors[i] ? const_cast<void*>(views.tensors[i]->raw()) : nullptr);
  }
  std::vector<AnyValue> results(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    if (!wanted.empty() && !wanted[i]) {
      slots.push_back(nullptr);
      continue;
    }
    if (!types[i].is_concrete()) return sizes_not_told(node, views.type_pointers, i, types[i]);
    TREADLE_ASSIGN(Tensor tensor, Tensor::allocate(types[i].element, known_dims(types[i].shape)));
    out[i] = operand_of(tensor);
    out[i].constant = nullptr;
    slots.push_back(tensor.mutable_raw());
    results[i] = AnyValue(std::move(tensor));
  }
  StateArena arena;
  PackCache packs;
  PrepareContext context{node, in, out, arena, packs, {}, 0};
  TREADLE_TRY(node.op->prepare(context));
  if (was_stopped()) return stopped();  // the state may be half made
  TREADLE_ASSIGN(Tensor scratch, Tensor::allocate(ElementType::kUint8, {static_cast<int64_t>(context.scratch_bytes)}));
  slots.push_back(scratch.mutable_raw());
  slots.push_back(nullptr);  // no kept memory
  std::vector<uint32_t> operands(slots.size());
  for (size_t i = 0; i < operands.size(); ++i) operands[i] = static_cast<uint32_t>(i);
  if (const uint32_t code = context.kernel.run(context.kernel.state, slots.data(), operands.data())) {
    return kernel_status(code);
  }
  return results;
}

Result<std::vector<AnyValue>> run_lowered(const ir::NodeInfo& node, const InputViews& views,
                                          std::span<const AnyValue> inputs, Guard* guard) {
  TREADLE_ASSIGN(auto graph, lower_node(node, views.type_pointers, views.tensors));
  return run_lowering(*graph, inputs, guard);
}

bool all_tensors(std::span<const Type> types) {
  for (const Type& t : types) {
    if (t.is_known() && (!t.is_tensor() || is_string(t.element))) return false;
  }
  return true;
}

// The input whose memory the output shares, with other sizes.
const Tensor* aliased(const OpDef& op, const InputViews& views, std::span<const Type> types) {
  if (op.alias_input < 0 || !types[0].is_concrete()) return nullptr;
  const Tensor* whole = views.tensors[static_cast<size_t>(op.alias_input)];
  const auto count = element_count(known_dims(types[0].shape));
  return whole && count.ok() && *count == whole->element_count() ? whole : nullptr;
}

}  // namespace

Result<std::vector<Type>> infer_outputs(const ir::NodeInfo& node, std::span<const AnyValue> inputs) {
  return infer(node, InputViews(inputs));
}

Result<std::vector<AnyValue>> run_node(const ir::NodeInfo& node, std::span<const AnyValue> inputs,
                                       std::span<const bool> wanted, Guard* guard) {
  const InputViews views(inputs);
  const OpDef& op = *node.op;
  TREADLE_TRY(check_type_rules(node, views.type_pointers, {}));
  TREADLE_ASSIGN(const std::vector<Type> types, infer(node, views));
  if (op.compute && (!op.prepare || !views.plain || !all_tensors(types))) {
    std::vector<AnyValue> results(node.output_count);
    ComputeContext context{node, inputs, results};
    TREADLE_TRY(op.compute(context));
    return results;
  }
  if (const Tensor* whole = aliased(op, views, types)) {
    return std::vector<AnyValue>{AnyValue(whole->reshaped(known_dims(types[0].shape)))};
  }
  if (op.prepare) return run_prepared(node, views, types, wanted);
  if (op.lower) return run_lowered(node, views, inputs, guard);
  return error(Code::kNotImplemented, "{} has no kernel for these inputs", op.name);
}

}  // namespace treadle::reference
