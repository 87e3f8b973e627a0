// CastLike(x, y) becomes a Cast of x to the type of y if that type is known. Nodes that only made y are then dead, and
// later passes need to look for one operator only.
#include "op/node.h"
#include "op/registry.h"
#include "opt/match.h"
#include "opt/passes.h"

namespace treadle::opt {

void replace_cast_like(ir::Graph& graph, Remarks*) {
  const OpDef& cast = require_op("Cast");
  ir::for_each_node(graph.top(), [&](ir::Node& node) {
    if (!is(node, "CastLike") || !node.outputs[0]) return;
    const ElementType to = node.outputs[0]->type.element;
    const OpVersion* const version = cast.version_for(node.version->since);
    if (to == ElementType::kUndefined || !version) return;
    ir::Attributes attributes = node.attributes;
    attributes.set(ir::Attribute::of("to", static_cast<int64_t>(to)));
    become(node, cast, *version, attributes);
    node.inputs.resize(1);
    node.input_count = 1;
  });
}

}  // namespace treadle::opt
