// A state that is stacked of parts at the end of each iteration, and whose parts are read separately, becomes a state
// for each part:
//
//   s = Loop(S; ss: a = Gather(ss, 0), b = Gather(ss, 1); ss' = Concat(Unsqueeze(a'), Unsqueeze(b')))
//
// becomes  a, b = Loop(Gather(S, 0), Gather(S, 1); a, b: a', b');  s = Concat(Unsqueeze(a), Unsqueeze(b))
//
// No iteration then copies the parts to join them. Models keep positions and velocities, or the keys and values of a
// layer, in one tensor; as separate states, each part is computed, or grows, in its own memory. Rows may be picked
// along another axis before parts are read, as beam searches do: Gather(ss, rows) then picks from each part.
//
// The pass gives the body whole states again, stacked of the new ones; take-stacked-parts then reads the parts. If
// sizes of parts are unknown, the check that they fit together runs behind the loop, not in the iteration that made
// them.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "op/axes.h"
#include "op/loop_view.h"
#include "opt/builder.h"
#include "opt/loop_edits.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/stacked_parts.h"
#include "opt/uses.h"

namespace treadle::opt {

namespace {

class Unstacker {
 public:
  Unstacker(ir::Graph& graph, ir::Region& region, size_t at, Remarks* remarks)
      : graph_(graph), before_loop_(graph, region, at), region_(region), loop_(*region.nodes[at]), remarks_(remarks) {}

  // Returns the position of the last node that need not be visited again.
  size_t run() {
    size_t behind = 0;
    if (loop_.masked()) return before_loop_.at();
    for (size_t i = loop_.states(); i-- > 0;) {
      if (read(i)) behind += unstack(i);
    }
    if (!replaced_.empty()) ir::replace_uses(graph_, replaced_);
    return before_loop_.at() + behind;
  }

 private:
  // A part of the state. `inside`: the value without the stacking axis, if only the stack has that axis.
  struct Piece {
    Part part;
    ir::Value* inside = nullptr;

    ir::Value* value() const { return inside ? inside : part.value; }
  };

  // --- whether a state is stacked of parts

  bool read(size_t i) {
    const auto [initial, before, after, final] = loop_.state(i);
    if (!after || after->owner != &loop_.body() || !is(after->producer, "Concat") || !after->type.has_shape)
      return false;
    axis_ = from_front(after->producer->attributes.get_int("axis"), after->type.rank());
    pieces_.clear();
    for (const Part& part : parts_of(after, axis_)) {
      pieces_.push_back({part, part.size() == 1 ? without_axis(part.value, axis_) : nullptr});
    }
    picks_.clear();
    return pieces_.size() > 1 && has_all_parts(initial) && has_all_parts(before) &&
           std::ranges::all_of(pieces_, [&](const Piece& p) { return keeps_sizes(p, before->type); }) &&
           count_uses(loop_.body(), after) == 1 && is_read_apart(before, true);
  }

  bool has_all_parts(const ir::Value* v) const {
    return v->type.is_tensor() && v->type.has_shape && v->type.rank() > axis_ &&
           v->type.shape[static_cast<size_t>(axis_)].is_known(pieces_.back().part.end);
  }

  bool keeps_sizes(const Piece& piece, const Type& whole) const {
    return has_sizes_of(piece.value()->type, type_of(piece, whole));
  }

  bool is_read_apart(const ir::Value* v, bool may_pick) {
    size_t reads = 0, apart = 0;
    for_each_use(loop_.body(), [&](const ir::Value* used, const ir::Node* node) {
      if (used != v) return;
      ++reads;
      apart += node && (takes_parts(*node, v) || (may_pick && picks(*node, v))) ? 1 : 0;
    });
    return reads > 0 && reads == apart;
  }

  bool takes_parts(const ir::Node& node, const ir::Value* v) const {
    const Taken taken = taken_by(node);
    return taken.whole == v && taken.axis == axis_ && std::ranges::all_of(taken.parts, [&](const Part& wanted) {
             return std::ranges::any_of(pieces_, [&](const Piece& p) { return p.part.covers(wanted); });
           });
  }

  // Whether the node picks a list of positions along another axis.
  bool picks(const ir::Node& node, const ir::Value* v) {
    if (!is(node, "Gather") || node.inputs[0] != v || node.inputs[1] == v) return false;
    if (node.inputs[1]->type.rank() != 1 || picked_axis(node) == axis_) return false;
    if (!is_read_apart(node.outputs[0], false)) return false;
    picks_.push_back(node.outputs[0]->producer);
    return true;
  }

  static int64_t picked_axis(const ir::Node& gather) {
    return from_front(gather.attributes.get_int("axis"), gather.inputs[0]->type.rank());
  }

  Type type_of(const Piece& piece, const Type& whole) const {
    Type type = whole;
    if (piece.inside) {
      type.shape.erase(static_cast<size_t>(axis_));
    } else {
      type.shape[static_cast<size_t>(axis_)] = piece.part.size();
    }
    return type;
  }

  // --- the change

  // Returns the number of nodes put behind the loop.
  size_t unstack(size_t i) {
    const auto [initial, before, after, final] = loop_.state(i);
    note_of_loop(remarks_, Change::kUnstacked, loop_.node(), loop_.node(), before->name);
    std::vector<ir::Value*> inside, last;
    for (const Piece& piece : pieces_) {
      const std::string name = fmt::format("{}:{}", before->name, piece.part.begin);
      inside.push_back(graph_.new_value(name, type_of(piece, before->type), &loop_.body()));
      ir::Value* result =
          loop_.add_state(taken(before_loop_, piece, initial, name), inside.back(), piece.value(), name);
      if (final) result->type = type_of(piece, final->type);
      last.push_back(result);
    }
    loop_.remove_state(i);
    for (ir::Node* pick : picks_) replaced_[pick->outputs[0]] = picked(*pick, inside);
    Builder top(graph_, loop_.body(), 0);
    replaced_[before] = stacked(top, inside, before->type, std::string(before->name));
    if (!final) return 0;
    Builder behind(graph_, region_, before_loop_.at() + 1);
    replaced_[final] = stacked(behind, last, final->type, std::string(final->name));
    return behind.added();
  }

  ir::Value* taken(Builder& build, const Piece& piece, ir::Value* whole, const std::string& name) {
    const Part& part = piece.part;
    const Type type = type_of(piece, whole->type);
    if (piece.inside) {
      ir::Value* at = graph_.new_constant(name + ":at", Tensor::scalar<int64_t>(ElementType::kInt64, part.begin));
      return build.call("Gather", {whole, at}, type, name, {ir::Attribute::of("axis", axis_)});
    }
    const auto number = [&](int64_t value) { return build.int64s({value}, name + ":at"); };
    return build.call("Slice", {whole, number(part.begin), number(part.end), number(axis_)}, type, name);
  }

  ir::Value* stacked(Builder& build, std::vector<ir::Value*> values, const Type& type, const std::string& name) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (!pieces_[i].inside) continue;
      Type part = type;
      part.shape[static_cast<size_t>(axis_)] = 1;
      values[i] = build.call("Unsqueeze", {values[i], build.int64s({axis_}, name + ":axis")}, std::move(part), name);
    }
    return build.call("Concat", values, type, name, {ir::Attribute::of("axis", axis_)});
  }

  // Replaces a node that picks rows from the whole state.
  ir::Value* picked(ir::Node& pick, const std::vector<ir::Value*>& from) {
    const auto& nodes = pick.parent->nodes;
    const auto at = std::ranges::find_if(nodes, [&](const auto& node) { return node.get() == &pick; });
    Builder build(graph_, *pick.parent, static_cast<size_t>(at - nodes.begin()));
    const int64_t axis = picked_axis(pick);
    const ir::Value& whole = *pick.outputs[0];
    const std::string name(whole.name);
    std::vector<ir::Value*> values;
    for (size_t i = 0; i < from.size(); ++i) {
      const int64_t of_part = axis - (pieces_[i].inside && axis > axis_ ? 1 : 0);
      values.push_back(build.call("Gather", {from[i], pick.inputs[1]}, type_of(pieces_[i], whole.type), name,
                                  {ir::Attribute::of("axis", of_part)}));
    }
    return stacked(build, values, whole.type, name);
  }

  ir::Graph& graph_;
  Builder before_loop_;
  ir::Region& region_;
  LoopEditor loop_;
  Remarks* remarks_;
  std::unordered_map<ir::Value*, ir::Value*> replaced_;  // replaced values and their replacements

  // The current state.
  int64_t axis_ = 0;
  std::vector<Piece> pieces_;
  std::vector<ir::Node*> picks_;
};

}  // namespace

void unstack_states(ir::Graph& graph, Remarks* remarks) {
  visit_nodes(graph.top(), [&](ir::Region& region, size_t at) {
    return is_loop(*region.nodes[at]) ? Unstacker(graph, region, at, remarks).run() : at;
  });
}

}  // namespace treadle::opt
