#include <algorithm>

#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/operands.h"

namespace treadle {

void with_form(const ir::Node& node, const std::function<void(const ElementwiseForm&)>& use) {
  std::vector<Operand> in;
  in.reserve(node.inputs.size());
  for (const ir::Value* v : node.inputs) in.push_back(v ? operand_of(*v) : Operand());
  with_form(node, in, operand_of(*node.outputs[0]), use);
}

void with_form(const ir::Node& node, std::span<const Operand> inputs, const Operand& result,
               const std::function<void(const ElementwiseForm&)>& use) {
  // Inference can derive sizes that no tensor can have. Operators prepare for tensors that exist.
  const auto can_exist = [](const Operand& of) { return element_count(of.dims).ok(); };
  if (!std::all_of(inputs.begin(), inputs.end(), can_exist) || !can_exist(result)) return;
  StateArena states;
  PackCache packs;
  ElementwiseForm form;
  PrepareContext context{node, inputs, std::span(&result, 1), states, packs, {}, 0, &form};
  context.form_only = true;
  context.most_moves = 0;
  if (node.op->prepare(context).ok()) use(form);
}

ElementwiseForm elementwise_form(const ir::Node& node) {
  ElementwiseForm result;
  with_form(node, [&](const ElementwiseForm& form) { result = in_one_type(form, node); });
  return result;
}

ElementwiseForm in_one_type(const ElementwiseForm& form, const ir::Node& node) {
  if (form.kind == ElementwiseForm::Kind::kConversion) return form;
  if (form.kind != ElementwiseForm::Kind::kOperation) return {};
  const auto type = [&](size_t i) {
    const ir::Value* v = node.inputs[form.arguments[i]];
    return v ? v->type.element : ElementType::kUndefined;
  };
  const size_t first = form.op == kernels::ElementwiseOp::kWhere ? 1 : 0;
  for (size_t i = first; i < kernels::info(form.op).inputs; ++i) {
    if (type(i) != type(first)) return {};
  }
  return form;
}

}  // namespace treadle
