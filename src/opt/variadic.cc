// Max, Min, Sum and Mean of more than two operands become a chain of two at a time, in their order: nodes like any
// other, which join the elementwise groups around them.
//
//   Min(a, b, c)   becomes   m = Min(a, b); Min(m, c)          Mean(a, b, c)   becomes   Div(Sum(Sum(a, b), c), 3)
//
// Only of types that are computed with as they are stored, so that nothing is rounded in between that was not before.
#include <algorithm>

#include "kernels/convert.h"
#include "op/op_def.h"
#include "opt/passes.h"
#include "opt/restater.h"
#include "type/make_tensor.h"

namespace treadle::opt {

namespace {

bool is_stored_as_computed(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
    case ElementType::kDouble:
    case ElementType::kInt32:
    case ElementType::kInt64:
    case ElementType::kUint32:
    case ElementType::kUint64:
      return true;
    default:
      return false;
  }
}

bool can_split(const ir::Node& node) {
  const OpDef& op = *node.op;
  const bool folds =
      op.domain.empty() && (op.name == "Max" || op.name == "Min" || op.name == "Sum" || op.name == "Mean");
  if (!folds || node.inputs.size() <= 2 || node.outputs.size() != 1) return false;
  const auto known = [](const ir::Value* v) { return v && v->type.is_concrete(); };
  return known(node.outputs[0]) && std::all_of(node.inputs.begin(), node.inputs.end(), known) &&
         is_stored_as_computed(node.outputs[0]->type.element);
}

class Splitter : public Restater {
 public:
  using Restater::Restater;

 private:
  ir::Value* restate(const ir::Node& node, bool /*in_loop*/) override {
    if (!can_split(node)) return nullptr;
    const bool is_mean = node.op->name == "Mean";
    ir::Value* acc = input(0);
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      Shape shape = acc->type.shape;
      if (!broadcast_into(shape, input(i)->type.shape).ok()) shape = node.outputs[0]->type.shape;
      acc = call(is_mean ? "Sum" : node.op->name, {acc, input(i)}, Type::tensor(element(), std::move(shape)));
    }
    return is_mean ? call("Div", {acc, count_of_inputs(node)}, acc->type) : acc;
  }

  ir::Value* count_of_inputs(const ir::Node& node) {
    const auto count = static_cast<int64_t>(node.inputs.size());
    Tensor number = make_tensor(element(), {});
    kernels::cast(ElementType::kInt64, element(), &count, number.mutable_raw(), 1);
    return graph().new_constant(std::string(node.name) + ":count", std::move(number));
  }
};

}  // namespace

void split_variadic(ir::Graph& graph, Journal* journal) {
  Splitter(graph, journal).run();
}

}  // namespace treadle::opt
