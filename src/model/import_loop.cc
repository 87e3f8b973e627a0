// Rewrites unusual loops of exporters, so that later stages need not handle them.
//
// A body may declare its iteration number or its condition with sizes of 1: spox writes int64[1] and bool[1]. A loop
// passes scalars. A Reshape at the head of the body gives them the sizes that the body declares:
//
//   body (int64[1] i, bool[1] c) { ... }   ->   body (int64 n, bool b) { i = Reshape(n, [1])  c = Reshape(b, [1]) ... }
//
// A Loop without cond ignores its body's condition, as the specification says. If the caller wants it obeyed, the Loop
// gets a cond that is true.

#include "model/importer.h"

namespace treadle::model {

namespace {

bool has_axes_of_one_element(const Type& type) {
  if (!type.is_tensor() || !type.has_shape || type.shape.empty()) return false;
  for (const Dim& size : type.shape) {
    if (size.is_known() && size.value() != 1) return false;
  }
  return true;
}

// Reshape in the operator set of the loop, so that the graph can be exported again. Before version 5 the sizes were an
// attribute.
const OpVersion& version_of_reshape(const OpDef& reshape, const Opsets& opsets) {
  const auto opset = opsets.find("");
  const OpVersion* version = opset == opsets.end() ? nullptr : reshape.version_for(opset->second);
  return version && version->inputs.size() > 1 ? *version : reshape.newest();
}

// Makes input `i` of the body a scalar, and computes the value that the body reads from it.
void reshape_input(ir::Graph& graph, ir::Region& body, size_t i, const Opsets& opsets) {
  ir::Value* declared = body.inputs[i];
  const Dims ones(declared->type.shape.size(), 1);
  const std::string name(declared->name.view());
  const OpDef& reshape = require_op("Reshape");
  const std::string path = fmt::format("{}:{}/{}", body.parent_node->name.view(), body.attribute, name);
  ir::Node* node = graph.new_node(&body, &reshape, &version_of_reshape(reshape, opsets), path, 0);
  body.inputs[i] = graph.new_value(name + ":number", Type::tensor(declared->type.element, Shape{}), &body);
  graph.add_input(node, body.inputs[i]);
  graph.add_input(node, graph.new_constant(name + ":sizes", Tensor::of_int64(ones)));
  node->outputs.push_back(declared);
  node->output_count = 1;
  declared->producer = node;
}

}  // namespace

void Importer::import_loop_conditions(ir::Node& loop, const ImportTarget& target) {
  if (options_.as_onnx) return;
  if (options_.obey_loop_conditions && loop.inputs.size() > 1 && !loop.inputs[1]) {
    const std::string name = fmt::format("{}:cond", loop.name.view());
    loop.inputs[1] = graph_->new_constant(name, Tensor::scalar<bool>(ElementType::kBool, true));
  }
  ir::Region* body = loop.region("body");
  if (!body) return;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (i < body->inputs.size() && has_axes_of_one_element(body->inputs[i]->type)) {
      reshape_input(*graph_, *body, i, *target.environment.opsets);
    }
  }
}

}  // namespace treadle::model
