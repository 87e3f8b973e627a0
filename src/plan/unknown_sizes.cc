#include "plan/unknown_sizes.h"

#include <algorithm>
#include <memory>

#include "op/operands.h"
#include "op/place.h"
#include "op/size_check.h"
#include "opt/builder.h"
#include "opt/remarks.h"

namespace treadle::plan {

namespace {

Type nothing() {
  return Type::tensor(ElementType::kUint8, {int64_t{0}});
}

bool is_asked(const ir::Value* v) {
  return v && v->type.is_tensor() && !v->type.is_concrete();
}

}  // namespace

bool has_unknown_sizes(const ir::Node& node, bool in_loop) {
  const auto is_open = [&](const Dim& size) { return in_loop ? !size.is_known() : size.is_unknown(); };
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const ir::Value* v) {
    return is_asked(v) && (!v->type.has_shape || std::any_of(v->type.shape.begin(), v->type.shape.end(), is_open));
  });
}

bool depends_on_unknown_sizes(const ir::Node& node, const ir::Region& region) {
  if (node.attributes.has(kNamedAs) || node.op->infer == &infer_same_as_first) return false;
  return has_unknown_sizes(node, opt::loop_around(region) != nullptr);
}

void ask_in_run(ir::Graph& graph, ir::Region& region, const ir::Node& node) {
  auto question = std::make_shared<SizeQuestion>(SizeQuestion{node, {}, {}, {}});
  const std::string name = node.name + ":sizes";
  ir::Node* check = opt::Builder(graph, region, region.nodes.size(), &node)
                        .node("CheckSizes", name, {ir::Attribute::of("of", node_place(node))});
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    ir::Value* v = node.inputs[i];
    question->types.push_back(v ? v->type : Type());
    question->constants.push_back(v && v->is_constant() ? v->constant : Tensor());
    if (!is_asked(v)) continue;
    question->asked.push_back(i);
    graph.add_input(check, v);
  }
  check->parsed = std::move(question);
  graph.add_output(check, name, nothing());
}

void hold_in_run(ir::Graph& graph, ir::Region& region, const ir::Node& by, ir::Value* made, const Type& stated) {
  if (!stated.is_tensor() || !stated.has_shape || !is_asked(made)) return;
  std::vector<int64_t> sizes;
  bool open = false;
  for (size_t i = 0; i < stated.shape.size(); ++i) {
    sizes.push_back(stated.shape[i].value_or(-1));
    open |= sizes.back() >= 0 && !(made->type.has_shape && made->type.shape[i].is_known());
  }
  if (!open) return;
  const std::string name = by.name + ":result";
  ir::Node* check = opt::Builder(graph, region, region.nodes.size(), &by)
                        .node("CheckResult", name, {ir::Attribute::of("sizes", sizes)});
  graph.add_input(check, made);
  graph.add_output(check, name, nothing());
}

}  // namespace treadle::plan
