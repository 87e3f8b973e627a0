//   s = Loop(ss = SequenceEmpty(); ss' = SequenceInsert(ss, y)); Y = ConcatFromSequence<axis = 0, new_axis = 1>(s)
//
// becomes  Y = Loop(; y).  It is how exporters write what a program keeps in a list. A list that may be empty is cut
// from the rows all the same, so that what fails for an empty one still does. So is a tensor that grows from nothing:
//
//   Y = Loop(ys = zeros(B, 0, N); ys' = Concat<axis = 1>(ys, y))   becomes   Y = Reshape(MoveAxis(Loop(; y)))
#include "opt/loop_sequences.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "op/loop_view.h"
#include "opt/builder.h"
#include "opt/loop_edits.h"
#include "opt/match.h"

namespace treadle::opt {

namespace {

class Lists {
 public:
  Lists(ir::Graph& graph, ir::Region& region, size_t at, const Dim& trips, Remarks* remarks)
      : graph_(graph),
        region_(region),
        loop_(*region.nodes[at]),
        body_(loop_.body()),
        place_(at + 1),
        trips_(trips),
        remarks_(remarks) {}

  bool run() {
    bool any = false;
    for (size_t state = loop_.states(); state-- > 0;) {
      const Appended appended = what_is_appended(state);
      if (!appended.node) continue;
      to_rows(state, appended);
      any = true;
    }
    ir::replace_uses(graph_, replaced_);
    return any;
  }

 private:
  struct Appended {
    ir::Node* node = nullptr;  // that appends; null: the state is something else
    ir::Value* piece = nullptr;
    int64_t axis = 0;
  };

  // To a state that nothing else reads or writes.
  Appended what_is_appended(size_t state) const {
    const auto [initial, in, out, final] = loop_.state(state);
    if (!out->producer || out->owner != &body_) return {};
    ir::Node& node = *out->producer;
    if (node.inputs.size() < 2 || node.inputs[0] != in) return {};
    const Appended appended{&node, node.inputs[1], node.attributes.get_int("axis", 1)};
    if (!appended.piece->type.is_concrete() || is_string(appended.piece->type.element)) return {};
    const bool is_row = grows(*initial, appended) || (!trips_.is_unknown() && is_list(*initial, node));
    const bool is_alone = is_row && count_uses(body_, in) == 1 && count_uses(body_, out) == 1;  // last: takes longest
    return is_alone ? appended : Appended{};
  }

  static bool is_list(const ir::Value& initial, const ir::Node& insert) {
    if (!is(initial.producer, "SequenceEmpty") || !is(&insert, "SequenceInsert")) return false;
    if (insert.inputs.size() > 2 && insert.inputs[2]) return false;
    const Type& list = initial.type;
    return list.kind == Type::Kind::kSequence && list.child->element == insert.inputs[1]->type.element;
  }

  static bool grows(const ir::Value& initial, const Appended& appended) {
    if (!is(appended.node, "Concat") || appended.node->inputs.size() != 2) return false;
    const Type &from = initial.type, &piece = appended.piece->type;
    if (!from.is_tensor() || !from.has_shape || from.element != piece.element || from.rank() != piece.rank())
      return false;
    const size_t axis = grown_axis(appended);
    for (size_t i = 0; i < piece.shape.size(); ++i) {
      if (piece.shape[i].value() == 0) return false;
      if (i == axis ? !from.shape[i].is_known(0) : !same(from.shape[i], piece.shape[i])) return false;
    }
    return true;
  }

  static size_t grown_axis(const Appended& appended) {
    const auto rank = static_cast<int64_t>(appended.piece->type.shape.size());
    return static_cast<size_t>(appended.axis < 0 ? appended.axis + rank : appended.axis);
  }

  void to_rows(size_t state, const Appended& appended) {
    ir::Value* row = appended.piece;
    ir::Value* result = loop_.state(state).final;
    const bool grows = is(appended.node, "Concat");
    const size_t axis = grows ? grown_axis(appended) : 0;
    note_of_loop(remarks_, Change::kFused, loop_.node(), *appended.node, "a scan output");
    std::erase_if(body_.nodes, [&](const auto& node) { return node.get() == appended.node; });
    loop_.remove_state(state);
    if (!result) return loop_.add_unread_scan_output(row);
    ir::Value* rows = loop_.add_scan_output(row, trips_, false, std::string(row->name) + ":rows");
    if (grows) {
      replaced_[result] = side_by_side(rows, axis, std::string(result->name), place_);
      return;
    }
    if (trips_.is_known() && trips_.value() > 0) replace_joins(result, rows);
    if (count_uses(graph_.top(), result) > 0) cut(result, rows);
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
    if (!stacks) return side_by_side(rows, static_cast<size_t>(axis), name, at);
    return axis == 0 ? rows : moved_axis(rows, axis, name, at);
  }

  // Rows one behind the other along an axis that they have.
  ir::Value* side_by_side(ir::Value* rows, size_t axis, const std::string& name, size_t at) {
    ir::Value* moved = axis == 0 ? rows : moved_axis(rows, static_cast<int64_t>(axis), name, at);
    return merged(moved, axis, name, axis == 0 ? at : at + 1);
  }

  ir::Value* moved_axis(ir::Value* rows, int64_t axis, const std::string& name, size_t at) {
    Type type = rows->type;
    type.shape.erase(0);
    return Builder(graph_, region_, at)
        .call("MoveAxis", {rows}, with_axis(type, static_cast<size_t>(axis), trips_), name,
              {ir::Attribute::of("from", 0), ir::Attribute::of("to", axis)});
  }

  // Axes `axis` and the one behind it as one.
  ir::Value* merged(ir::Value* v, size_t axis, const std::string& name, size_t at) {
    Shape shape = v->type.shape;
    shape[axis + 1] = shape[axis + 1] * shape[axis];
    shape.erase(axis);
    std::vector<int64_t> sizes;
    for (const Dim& d : shape) sizes.push_back(d.is_known() ? d.value() : -1);
    Builder build(graph_, region_, at);
    return build.call("Reshape", {v, build.int64s(sizes, name + ":sizes")},
                      Type::tensor(v->type.element, std::move(shape)), name + ":merge",
                      {ir::Attribute::of("allowzero", 1)});
  }

  void cut(ir::Value* list, ir::Value* rows) {
    replaced_[list] = Builder(graph_, region_, place_)
                          .call("SplitToSequence", {rows}, list->type, std::string(list->name) + ":list",
                                {ir::Attribute::of("axis", 0), ir::Attribute::of("keepdims", 0)});
  }

  ir::Graph& graph_;
  ir::Region& region_;
  LoopEditor loop_;
  ir::Region& body_;
  const size_t place_;  // behind the loop
  const Dim& trips_;
  Remarks* remarks_;
  std::unordered_map<ir::Value*, ir::Value*> replaced_;
};

}  // namespace

bool lists_to_rows(ir::Graph& graph, ir::Region& region, size_t at, const Dim& trips, Remarks* remarks) {
  return Lists(graph, region, at, trips, remarks).run();
}

}  // namespace treadle::opt
