#include "opt/loop_edits.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "op/op_def.h"
#include "opt/builder.h"

namespace treadle::opt {

ir::Node& put_into_branches(ir::Graph& graph, ir::Region& region, size_t at, ir::Value* condition,
                            std::string_view name) {
  std::unique_ptr<ir::Node> node = take_out(region, at);
  ir::Node* choice = Builder(graph, region, at).node("If", name);
  graph.add_input(choice, condition);
  // The If takes over the node's outputs, so their readers stay unchanged. The node gets new outputs.
  for (ir::Value*& result : node->outputs) {
    if (!result) {
      graph.add_absent_output(choice);
      continue;
    }
    ir::Value* inside = graph.add_output(choice, std::string(result->name) + ":chosen", result->type);
    std::swap(inside->name, result->name);
    inside->producer = node.get();
    result->producer = choice;
    choice->outputs.back() = result;
    result = inside;
  }

  ir::Region* yes = graph.new_region(choice, "then_branch");
  ir::Region* no = graph.new_region(choice, "else_branch");
  std::vector<ir::Value*> results(node->outputs.begin(), node->outputs.end());
  node->parent = yes;
  for (ir::Value* result : results) {
    if (result) result->owner = yes;
  }
  yes->nodes.push_back(std::move(node));
  yes->outputs = results;
  std::unordered_map<const ir::Value*, ir::Value*> map;
  for (ir::Value* v : ir::captures(*yes)) map[v] = v;
  no->outputs = ir::inline_region(*yes, no, map);
  return *choice;
}

size_t count_uses(const ir::Region& region, const ir::Value* v) {
  auto count = static_cast<size_t>(std::count(region.outputs.begin(), region.outputs.end(), v));
  for (const auto& node : region.nodes) {
    count += static_cast<size_t>(std::count(node->inputs.begin(), node->inputs.end(), v));
    for (const auto& inner : node->regions) count += count_uses(*inner, v);
  }
  return count;
}

}  // namespace treadle::opt
