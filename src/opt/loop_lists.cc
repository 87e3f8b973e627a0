//   s = Loop(ss = SequenceEmpty(); ss' = SequenceInsert(ss, y)); Y = ConcatFromSequence<axis = 0, new_axis = 1>(s)
//
// becomes  Y = Loop(; y).  It is how exporters write what a program keeps in a list. A list that may be empty is cut
// from the rows all the same, so that what fails for an empty one still does.
#include "opt/loop_lists.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "op/op_def.h"
#include "op/registry.h"
#include "opt/loop_edits.h"

namespace treadle::opt {

namespace {

bool is(const ir::Node* node, std::string_view op) {
  return node && node->op->domain.empty() && node->op->name == op;
}

class Lists {
 public:
  Lists(ir::Graph& graph, ir::Region& region, size_t at, const Dim& trips, Journal* journal)
      : graph_(graph),
        region_(region),
        loop_(*region.nodes[at]),
        body_(*loop_.region("body")),
        place_(at + 1),
        trips_(trips),
        journal_(journal) {}

  bool run() {
    bool any = false;
    for (size_t state = body_.inputs.size() - 2; state-- > 0;) {
      if (!is_list(state)) continue;
      to_rows(state);
      any = true;
    }
    ir::replace_uses(graph_, replaced_);
    return any;
  }

 private:
  bool is_list(size_t state) const {
    const ir::Value *initial = loop_.inputs[2 + state], *in = body_.inputs[2 + state], *out = body_.outputs[1 + state];
    if (!is(initial->producer, "SequenceEmpty") || !is(out->producer, "SequenceInsert") || out->owner != &body_) {
      return false;
    }
    const ir::Node& insert = *out->producer;
    if (insert.inputs[0] != in || (insert.inputs.size() > 2 && insert.inputs[2])) return false;
    const Type& type = insert.inputs[1]->type;
    const Type& list = initial->type;
    const bool fits = list.kind == Type::Kind::kSequence && list.child->element == type.element;
    return fits && type.is_concrete() && !is_string(type.element) && count_uses(body_, in) == 1 &&
           count_uses(body_, out) == 1;
  }

  void to_rows(size_t state) {
    ir::Node* insert = body_.outputs[1 + state]->producer;
    ir::Value* row = insert->inputs[1];
    ir::Value* list = loop_.outputs[state];
    note_of_loop(journal_, Change::kAbsorbed, loop_, *insert, "a scan output");
    std::erase_if(body_.nodes, [&](const auto& node) { return node.get() == insert; });
    remove_loop_state(loop_, state);

    const bool has_types = body_.output_types.size() == body_.outputs.size();
    body_.outputs.push_back(row);
    if (has_types) body_.output_types.push_back(row->type);
    if (!list) {
      graph_.add_absent_output(&loop_);
      return;
    }
    list->producer = nullptr;
    ir::Value* rows = graph_.add_output(&loop_, std::string(row->name) + ":rows", with_axis(row->type, 0, trips_));
    if (trips_.is_known() && trips_.value() > 0) replace_joins(list, rows);
    if (count_uses(graph_.top(), list) > 0) cut(list, rows);
  }

  static Type with_axis(const Type& element, size_t axis, const Dim& size) {
    Type type = element;
    type.shape.insert(axis, size);
    return type;
  }

  // Every ConcatFromSequence of the list beside the loop.
  void replace_joins(const ir::Value* list, ir::Value* rows) {
    for (size_t i = place_; i < region_.nodes.size(); ++i) {
      if (!is(region_.nodes[i].get(), "ConcatFromSequence") || region_.nodes[i]->inputs[0] != list) continue;
      const std::unique_ptr<ir::Node> join = std::move(region_.nodes[i]);
      region_.nodes.erase(region_.nodes.begin() + static_cast<std::ptrdiff_t>(i));
      const size_t before = region_.nodes.size();
      join->outputs[0]->producer = nullptr;
      replaced_[join->outputs[0]] = joined(*join, rows, i);
      i += region_.nodes.size() - before;
      --i;
    }
  }

  ir::Value* joined(const ir::Node& join, ir::Value* rows, size_t at) {
    const bool stacks = join.attributes.get_int("new_axis") != 0;
    const auto rank = static_cast<int64_t>(rows->type.shape.size()) - (stacks ? 0 : 1);
    const int64_t given = join.attributes.get_int("axis");
    const int64_t axis = given < 0 ? given + rank : given;
    const std::string name(join.name);
    ir::Value* moved = axis == 0 ? rows : moved_axis(rows, axis, name, at);
    return stacks ? moved : merged(moved, static_cast<size_t>(axis), name, axis == 0 ? at : at + 1);
  }

  ir::Value* moved_axis(ir::Value* rows, int64_t axis, const std::string& name, size_t at) {
    const OpDef& op = require_op("MoveAxis", "treadle");
    ir::Node* node = graph_.new_node(&region_, &op, &op.newest(), name, at);
    node->attributes.set(ir::Attribute::of("from", 0));
    node->attributes.set(ir::Attribute::of("to", axis));
    graph_.add_input(node, rows);
    Type type = rows->type;
    type.shape.erase(0);
    return graph_.add_output(node, name + ":moved", with_axis(type, static_cast<size_t>(axis), trips_));
  }

  // Axes `axis` and the one behind it as one.
  ir::Value* merged(ir::Value* v, size_t axis, const std::string& name, size_t at) {
    Dims dims = known_dims(v->type.shape);
    dims[axis + 1] *= dims[axis];
    dims.erase(axis);
    const OpDef& op = require_op("Reshape");
    ir::Node* node = graph_.new_node(&region_, &op, &op.newest(), name + ":merge", at);
    node->attributes.set(ir::Attribute::of("allowzero", 1));
    graph_.add_input(node, v);
    const std::vector<int64_t> sizes(dims.begin(), dims.end());
    graph_.add_input(node, graph_.new_constant(name + ":sizes", Tensor::of_int64(sizes)));
    return graph_.add_output(node, name + ":joined", Type::tensor(v->type.element, to_shape(dims)));
  }

  void cut(ir::Value* list, ir::Value* rows) {
    const OpDef& op = require_op("SplitToSequence");
    ir::Node* node = graph_.new_node(&region_, &op, &op.newest(), std::string(list->name) + ":list", place_);
    node->attributes.set(ir::Attribute::of("axis", 0));
    node->attributes.set(ir::Attribute::of("keepdims", 0));
    graph_.add_input(node, rows);
    replaced_[list] = graph_.add_output(node, std::string(list->name) + ":list", list->type);
  }

  ir::Graph& graph_;
  ir::Region& region_;
  ir::Node& loop_;
  ir::Region& body_;
  const size_t place_;  // behind the loop
  const Dim& trips_;
  Journal* journal_;
  std::unordered_map<ir::Value*, ir::Value*> replaced_;
};

}  // namespace

bool lists_to_rows(ir::Graph& graph, ir::Region& region, size_t at, const Dim& trips, Journal* journal) {
  return Lists(graph, region, at, trips, journal).run();
}

}  // namespace treadle::opt
