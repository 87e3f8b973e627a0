#include "plan/unknown_sizes.h"

#include <algorithm>
#include <memory>

#include "op/place.h"
#include "opt/builder.h"
#include "opt/remarks.h"

namespace treadle::plan {

namespace {

bool is_unknown(const Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_unknown(); });
}

}  // namespace

bool depends_on_unknown_sizes(const ir::Node& node, const ir::Region& region) {
  if (opt::loop_around(region) || !node.regions.empty() || node.attributes.has(kNamedAs)) return false;
  int operands = 0;
  bool unknown = false;
  for (const ir::Value* v : node.inputs) {
    if (!v) continue;
    if (!v->type.is_tensor()) return false;
    ++operands;
    unknown |= !v->type.has_shape || is_unknown(v->type.shape);
  }
  return unknown && operands > 1;
}

void ask_in_run(ir::Graph& graph, ir::Region& region, ir::Node& node) {
  const auto first =
      std::find_if(node.inputs.begin(), node.inputs.end(), [](const ir::Value* v) { return v && !v->is_constant(); });
  const ir::Attribute from = ir::Attribute::of("from", static_cast<int64_t>(first - node.inputs.begin()));
  const std::string name = node.name + ":sizes";
  ir::Node* check = opt::Builder(graph, region, region.nodes.size(), &node).node("CheckSizes", name, {from});
  check->parsed = std::make_shared<const ir::NodeInfo>(node);
  for (ir::Value* v : node.inputs) graph.add_input(check, v);
  *first = graph.add_output(check, name, (*first)->type);
}

}  // namespace treadle::plan
