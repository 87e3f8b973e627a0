// Most folded nodes form chains from weight to weight (dequantise, transpose, join). The memory of a link is freed as
// soon as the link's last user is folded, so that the next link reuses it.

#include "infer/inference.h"
#include "op/op_def.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/uses.h"
#include "reference/interpreter.h"

namespace treadle::opt {

namespace {

class Folder {
 public:
  Folder(ir::Graph& graph, Remarks* remarks, const reference::FoldLimits& limits)
      : graph_(graph), remarks_(remarks), folding_(limits) {
    for_each_use(graph.top(), [this](const ir::Value* v, const ir::Node*) {
      if (v) ++*uses_.emplace(v).first;
    });
  }

  void run() {
    erase_nodes(graph_.top(), [&](const ir::Region&, ir::Node& node) { return !stop_requested() && fold(node); });
  }

 private:
  bool fold(ir::Node& node) {
    const OpDef& op = *node.op;
    if (op.control != Control::kNone || !node.regions.empty() || !op.folds()) return false;
    std::vector<AnyValue> inputs;
    for (const ir::Value* v : node.inputs) {
      if (v && !v->is_constant()) return false;
      inputs.push_back(v ? AnyValue(v->constant) : AnyValue());
    }
    std::vector<AnyValue> results;
    if (!evaluate(node, inputs, results)) return false;
    for (size_t i = 0; i < results.size(); ++i) {
      if (node.outputs[i]) make_constant(*node.outputs[i], results[i].tensor());
    }
    for (ir::Value* v : node.inputs) {
      if (v && --*uses_.emplace(v).first == 0) v->constant = {};
    }
    note(remarks_, Change::kFolded, *node.parent, node);
    return true;
  }

  // Whether all outputs are known now. A node that fails is left for the run, which reports the error if it reaches the
  // node.
  bool evaluate(const ir::Node& node, std::span<const AnyValue> inputs, std::vector<AnyValue>& results) {
    const auto types = reference::infer_outputs(node, inputs);
    if (!types.ok() || !worth_folding(inputs, *types)) return false;
    auto computed = folding_.evaluate(node, inputs);
    if (!computed) return false;
    results = std::move(*computed);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] && !results[i].is_tensor()) return false;
    }
    return true;
  }

  void make_constant(ir::Value& value, const Tensor& tensor) {
    value.constant = tensor;
    value.type = Type::tensor(tensor.type(), to_shape(tensor.dims()));
    value.producer = nullptr;
    value.owner = &graph_.top();
  }

  ir::Graph& graph_;
  Remarks* remarks_;
  reference::Folding folding_;
  PointerMap<ir::Value, size_t> uses_;
};

}  // namespace

void fold_constants(ir::Graph& graph, Remarks* remarks, const reference::FoldLimits& limits) {
  Folder(graph, remarks, limits).run();
}

}  // namespace treadle::opt
