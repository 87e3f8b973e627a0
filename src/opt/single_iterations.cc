// Replaces a Scan that makes one iteration by its body. A stream that is pushed step by step has such loops. A loop
// whose nodes can fail stays, because its errors name the iteration.
#include <algorithm>
#include <unordered_map>

#include "op/effects.h"
#include "op/loop_view.h"
#include "opt/builder.h"
#include "opt/match.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

bool same_type(const ir::Value* a, const ir::Value* b) {
  return a && b && a->type.is_concrete() && b->type.is_concrete() && a->type.element == b->type.element &&
         same(a->type.shape, b->type.shape);
}

// Whether `whole` is one element of the type of `element`.
bool is_one_step(const ir::Value* whole, const ir::Value* element) {
  if (!whole->type.is_concrete() || !element->type.is_concrete()) return false;
  const Shape& shape = whole->type.shape;
  return whole->type.element == element->type.element && !shape.empty() && shape[0].is_known(1) &&
         same(Shape(shape.begin() + 1, shape.end()), element->type.shape);
}

bool runs_once(const ir::Node& node) {
  if (node.op->control != Control::kScan || node.version->since < 9) return false;
  const LoopView scan(node);
  if (scan.masked()) return false;
  for (size_t i = 0; i < scan.states(); ++i) {
    const auto [initial, before, after, final] = scan.state(i);
    if (!same_type(initial, before) || (final && !same_type(initial, after))) return false;
  }
  for (size_t i = 0; i < scan.scan_inputs(); ++i) {
    const LoopView::ScanInput in = scan.scan_input(i);
    if (in.axis != 0 || !is_one_step(in.whole, in.element)) return false;
  }
  for (size_t i = 0; i < scan.scan_outputs(); ++i) {
    const LoopView::ScanOutput out = scan.scan_output(i);
    if (out.whole && (out.axis != 0 || !out.row || !is_one_step(out.whole, out.row))) return false;
  }
  const auto& nodes = scan.body().nodes;
  return std::all_of(nodes.begin(), nodes.end(), [](const auto& n) { return is_total(*n); });
}

class Unroller {
 public:
  Unroller(ir::Graph& graph, Remarks* remarks) : graph_(graph), remarks_(remarks) {}

  void run() {
    rewrite_nodes(graph_.top(), [&](ir::Region& region, size_t at) {
      return runs_once(*region.nodes[at]) ? unroll(region, at) - 1 : at;
    });
    if (!replaced_.empty()) ir::replace_uses(graph_, replaced_);
  }

 private:
  // Returns the position behind the nodes that replaced the loop.
  size_t unroll(ir::Region& region, size_t at) {
    const std::unique_ptr<ir::Node> node = take_out(region, at);
    note_of_loop(remarks_, Change::kUnrolled, *node, *node);
    Builder build(graph_, region, at);
    const LoopEditor scan(*node);
    for (size_t i = 0; i < scan.states(); ++i) replaced_[scan.state(i).before] = scan.state(i).initial;
    for (size_t i = 0; i < scan.scan_inputs(); ++i) {
      const LoopView::ScanInput in = scan.scan_input(i);
      replaced_[in.element] = without_steps(build, in.whole, *in.element);
    }
    build.adopt_all(scan.body());
    for (size_t i = 0; i < scan.states(); ++i) {
      if (ir::Value* final = scan.state(i).final) replaced_[final] = scan.state(i).after;
    }
    for (size_t i = 0; i < scan.scan_outputs(); ++i) {
      const auto [row, whole, axis, reverse] = scan.scan_output(i);
      if (whole) replaced_[whole] = moved(build, "Unsqueeze", row, whole->name, whole->type);
    }
    return build.at();
  }

  static ir::Value* without_steps(Builder& build, ir::Value* whole, const ir::Value& element) {
    if (whole->is_constant()) {
      return build.graph().new_constant(element.name, whole->constant.reshaped(known_dims(element.type.shape)));
    }
    return moved(build, "Squeeze", whole, element.name, element.type);
  }

  static ir::Value* moved(Builder& build, const char* op, ir::Value* from, std::string_view name, const Type& type) {
    return build.call(op, {from, build.int64s({0}, std::string(name) + ":axis")}, type, name);
  }

  ir::Graph& graph_;
  Remarks* remarks_;
  std::unordered_map<ir::Value*, ir::Value*> replaced_;
};

}  // namespace

void unroll_single_iterations(ir::Graph& graph, Remarks* remarks) {
  Unroller(graph, remarks).run();
}

}  // namespace treadle::opt
