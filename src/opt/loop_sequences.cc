// A sequence to which every iteration appends becomes a scan output:
//
//   s = Loop(ss = SequenceEmpty(); ss' = SequenceInsert(ss, y)); Y = ConcatFromSequence<axis = 0, new_axis = 1>(s)
//
// becomes  Y = Loop(; y).  Exporters write a program's list in this way. A sequence that may be empty is still cut from
// the rows, so that nodes which fail for an empty sequence still fail. A tensor that grows from nothing becomes rows,
// too:
//
//   Y = Loop(ys = zeros(B, 0, N); ys' = Concat<axis = 1>(ys, y))   becomes   Y = Reshape(MoveAxis(Loop(; y)))
//
// If the tensors of a sequence differ along the axis on which they are joined, they cannot be rows. They become a
// tensor that grows (plan/growing.h), which takes a small part of the time of a sequence of values:
//
//   s = Loop(ss = SequenceEmpty(); ss' = SequenceInsert(ss, y)); Y = ConcatFromSequence<axis = 0>(s)
//
// becomes  none, g = Loop(n = true, ys = zeros(0); n' = false, ys' = Concat<axis = 0>(ys, y))
//          Y = If(none; ConcatFromSequence<axis = 0>(SequenceEmpty()); g)
//
// An empty sequence has nothing to join: the first branch fails, as the model does.
#include "opt/loop_sequences.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "op/axes.h"
#include "op/loop_view.h"
#include "opt/builder.h"
#include "opt/loop_edits.h"
#include "opt/match.h"
#include "type/make_tensor.h"

namespace treadle::opt {

namespace {

bool is_list(const ir::Value& initial, const ir::Node& insert) {
  if (!is(initial.producer, "SequenceEmpty") || !is(&insert, "SequenceInsert")) return false;
  if (insert.inputs.size() > 2 && insert.inputs[2]) return false;
  const Type& list = initial.type;
  return list.kind == Type::Kind::kSequence && list.child->element == insert.inputs[1]->type.element;
}

class Lists {
 public:
  Lists(ir::Graph& graph, ir::Region& region, size_t at, const Dim& iterations, Remarks* remarks)
      : graph_(graph),
        region_(region),
        loop_(*region.nodes[at]),
        body_(loop_.body()),
        place_(at + 1),
        iterations_(iterations),
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
    ir::Node* node = nullptr;  // the node that appends; null: the state is not such a state
    ir::Value* piece = nullptr;
    int64_t axis = 0;
  };

  // The append to a state that no other node reads or writes.
  Appended what_is_appended(size_t state) const {
    const auto [initial, in, out, final] = loop_.state(state);
    if (!out->producer || out->owner != &body_) return {};
    ir::Node& node = *out->producer;
    if (node.inputs.size() < 2 || node.inputs[0] != in) return {};
    const Appended appended{&node, node.inputs[1], node.attributes.get_int("axis", 1)};
    if (!appended.piece->type.is_concrete() || is_string(appended.piece->type.element)) return {};
    const bool is_row = grows(*initial, appended) || (!iterations_.is_unknown() && is_list(*initial, node));
    // The last test: it takes longest
    const bool is_alone = is_row && count_uses(body_, in) == 1 && count_uses(body_, out) == 1;
    return is_alone ? appended : Appended{};
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
    ir::Value* rows = loop_.add_scan_output(row, iterations_, false, std::string(row->name) + ":rows");
    if (grows) {
      replaced_[result] = side_by_side(rows, axis, std::string(result->name), place_);
      return;
    }
    if (iterations_.is_known() && iterations_.value() > 0) replace_joins(result, rows);
    if (count_uses(graph_.top(), result) > 0) cut(result, rows);
  }

  static Type with_axis(const Type& element, size_t axis, const Dim& size) {
    Type type = element;
    type.shape.insert(axis, size);
    return type;
  }

  // Replaces every ConcatFromSequence of the list in the loop's region.
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

  // Joins the rows along an axis that they have.
  ir::Value* side_by_side(ir::Value* rows, size_t axis, const std::string& name, size_t at) {
    ir::Value* moved = axis == 0 ? rows : moved_axis(rows, static_cast<int64_t>(axis), name, at);
    return merged(moved, axis, name, axis == 0 ? at : at + 1);
  }

  ir::Value* moved_axis(ir::Value* rows, int64_t axis, const std::string& name, size_t at) {
    Type type = rows->type;
    type.shape.erase(0);
    return Builder(graph_, region_, at)
        .call("MoveAxis", {rows}, with_axis(type, static_cast<size_t>(axis), iterations_), name,
              {ir::Attribute::of("from", 0), ir::Attribute::of("to", axis)});
  }

  // Merges axis `axis` and the axis behind it.
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
  const size_t place_;  // the position behind the loop
  const Dim& iterations_;
  Remarks* remarks_;
  std::unordered_map<ir::Value*, ir::Value*> replaced_;
};

class JoinedLists {
 public:
  JoinedLists(ir::Graph& graph, ir::Region& region, size_t at, Remarks* remarks)
      : graph_(graph), region_(region), loop_(*region.nodes[at]), remarks_(remarks) {}

  bool run() {
    bool any = false;
    for (size_t state = loop_.states(); state-- > 0;) any |= grow(state);
    return any;
  }

 private:
  bool grow(size_t state) {
    const auto [initial, before, after, list] = loop_.state(state);
    ir::Region& body = loop_.body();
    ir::Node* const insert = list && after->owner == &body ? after->producer : nullptr;
    if (!insert || !is_list(*initial, *insert) || insert->inputs[0] != before) return false;
    const std::vector<ir::Node*> joins = joins_of(list);
    if (joins.empty() || joins.size() != count_uses(graph_.top(), list)) return false;
    ir::Value* const piece = insert->inputs[1];
    const auto axis = joined_axis(joins, piece->type);
    if (!axis || count_uses(body, before) != 1 || count_uses(body, after) != 1) return false;
    note_of_loop(remarks_, Change::kFused, loop_.node(), *insert, "a tensor that grows");
    const auto place = position(*insert);
    const std::unique_ptr<ir::Node> gone = take_out(body, place);
    loop_.remove_state(state);
    ir::Value* const whole = add_growing(*gone, piece, *axis, place);
    ir::Value* const none = add_flag(std::string(gone->name) + ":none");
    for (ir::Node* join : joins) choose(*join, initial, none, whole);
    return true;
  }

  // The ConcatFromSequences of the list in the loop's region.
  std::vector<ir::Node*> joins_of(const ir::Value* list) const {
    std::vector<ir::Node*> joins;
    for (const auto& node : region_.nodes) {
      const bool reads = is(node.get(), "ConcatFromSequence") && node->inputs[0] == list;
      if (reads && node->outputs[0]) joins.push_back(node.get());
    }
    return joins;
  }

  // The axis along which all joins join; only its size may vary.
  static std::optional<size_t> joined_axis(const std::vector<ir::Node*>& joins, const Type& piece) {
    if (!piece.is_tensor() || !piece.has_shape || is_string(piece.element)) return std::nullopt;
    const auto rank = static_cast<int64_t>(piece.shape.size());
    const auto axis_of = [&](const ir::Node* join) { return from_front(join->attributes.get_int("axis"), rank); };
    const int64_t axis = axis_of(joins[0]);
    if (axis < 0 || axis >= rank) return std::nullopt;
    for (const ir::Node* join : joins) {
      if (join->attributes.get_int("new_axis") != 0 || axis_of(join) != axis) return std::nullopt;
    }
    for (size_t d = 0; d < piece.shape.size(); ++d) {
      if (static_cast<int64_t>(d) != axis && !piece.shape[d].is_known()) return std::nullopt;
    }
    return static_cast<size_t>(axis);
  }

  static size_t position(const ir::Node& node) {
    const auto& nodes = node.parent->nodes;
    const auto found = std::ranges::find_if(nodes, [&](const auto& other) { return other.get() == &node; });
    return static_cast<size_t>(found - nodes.begin());
  }

  ir::Value* add_growing(const ir::Node& insert, ir::Value* piece, size_t axis, size_t place) {
    const std::string name(insert.name);
    Type type = piece->type;
    type.shape[axis] = Dim::unknown();
    Dims nothing;
    for (const Dim& d : type.shape) nothing.push_back(d.value_or(0));
    ir::Value* start = graph_.new_constant(name + ":start", make_tensor(piece->type.element, std::move(nothing)));
    ir::Value* before = graph_.new_value(name + ":before", type, &loop_.body());
    ir::Value* after =
        Builder(graph_, loop_.body(), place)
            .call("Concat", {before, piece}, type, name, {ir::Attribute::of("axis", static_cast<int64_t>(axis))});
    return loop_.add_state(start, before, after, name + ":joined");
  }

  // Adds a state that is true if the loop made no iteration.
  ir::Value* add_flag(const std::string& name) {
    const auto constant = [&](bool value) {
      return graph_.new_constant(name, Tensor::scalar<bool>(ElementType::kBool, value));
    };
    ir::Value* before = graph_.new_value(name, Type::tensor(ElementType::kBool, Shape{}), &loop_.body());
    return loop_.add_state(constant(true), before, constant(false), name);
  }

  void choose(ir::Node& join, ir::Value* empty, ir::Value* none, ir::Value* whole) {
    join.inputs[0] = empty;
    const ir::Node& choice = put_into_branches(graph_, region_, position(join), none, std::string(join.name) + ":any");
    ir::Region& found = IfView(choice).else_branch();
    found.outputs[0] = whole;
    found.nodes.clear();
  }

  ir::Graph& graph_;
  ir::Region& region_;
  LoopEditor loop_;
  Remarks* remarks_;
};

}  // namespace

bool lists_to_growing(ir::Graph& graph, ir::Region& region, size_t at, Remarks* remarks) {
  return JoinedLists(graph, region, at, remarks).run();
}

bool lists_to_rows(ir::Graph& graph, ir::Region& region, size_t at, const Dim& iterations, Remarks* remarks) {
  return Lists(graph, region, at, iterations, remarks).run();
}

}  // namespace treadle::opt
