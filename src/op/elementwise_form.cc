#include <algorithm>

#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/operands.h"

namespace treadle {

ElementwiseForm elementwise_form(const ir::Node& node) {
  std::vector<Operand> in, out{operand_of(*node.outputs[0])};
  for (const ir::Value* v : node.inputs) in.push_back(v ? operand_of(*v) : Operand());
  StateArena states;
  PackCache packs;
  ElementwiseForm form;
  PrepareContext context{node, in, out, states, packs, {}, 0, &form};
  context.form_only = true;
  return node.op->prepare(context).ok() ? in_one_type(form, node) : ElementwiseForm();
}

ElementwiseForm in_one_type(const ElementwiseForm& form, const ir::Node& node) {
  if (form.kind == ElementwiseForm::Kind::kConversion) {
    return form.converter.step_count == 1 ? form : ElementwiseForm();
  }
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
