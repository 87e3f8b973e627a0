// A Loop whose trips are counted, and that picks its inputs by the trip counter, is a Scan that does not say so:
//
//   Loop(M, true, h0; i, c, h: x = Gather(X, i); ...)   becomes   Scan(h0, X; h, x: ...)
//
// where M is the number of trips, the condition is never false, states keep their types, and every index is known to be
// inside of X. The last one decides whether the rewrite is done: an index beyond the end is an error of its trip, so
// such a Loop stays what it is. Numbers are compared as they are known when a plan is made: M is often the size of X,
// then both may be a symbol.
//
// Indices are the counter, the counter plus a number, or a number minus the counter (that is a reverse scan), in
// whatever Cast, Unsqueeze, Squeeze and Reshape make of it. Slice of one position is a Gather first, and lists that the
// loop appends to are scan outputs (opt/loop_lists.h). A Loop that carries nothing from trip to trip is a Scan of the
// counter. Where the counter
// has other uses, it becomes a scan input as well.
#include <algorithm>
#include <optional>
#include <unordered_set>

#include "check/inference.h"
#include "op/op_def.h"
#include "op/registry.h"
#include "ops/control/loop.h"
#include "opt/all_trips.h"
#include "opt/axis_rules.h"
#include "opt/loop_lists.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

// An index in trip i: offset + i, or offset - i.
struct Index {
  Dim offset = 0;
  bool falls = false;
};

// Positions [low, high) of an axis, one per trip.
struct Picked {
  ir::Value* whole = nullptr;
  int64_t axis = 0;
  Dim low, high;
  bool reverse = false;
};

bool is(const ir::Node* node, std::initializer_list<std::string_view> ops) {
  return node && node->op->domain.empty() && std::find(ops.begin(), ops.end(), node->op->name) != ops.end();
}

bool is_at_least(const Dim& d, int64_t least) {
  const auto bound = d.lower_bound();
  return bound && *bound >= least;
}

bool is_one_element(const ir::Value* v) {
  return v->type.is_concrete() && count_of(*v) == 1;
}

// One Loop, as it is known before its trips.
class CountedLoop {
 public:
  CountedLoop(const ir::Node& loop, const Inference& known)
      : loop_(loop), body_(*loop.region("body")), known_(known), trips_(find_trips()) {}

  // Unknown: its trips are not counted.
  const Dim& trips() const { return trips_; }

  // What a Gather or a Slice picks by the counter, if that is inside of the data in all trips.
  std::optional<Picked> picked_by(const ir::Node& node) const {
    if (is(&node, {"Gather"})) {
      return picked(node.inputs[0], node.attributes.get_int("axis"), index_of(node.inputs[1]));
    }
    if (!is(&node, {"Slice"}) || node.inputs.size() < 4) return std::nullopt;
    const auto axes = constant_ints(node, 3), steps = node.inputs.size() > 4 ? constant_ints(node, 4) : std::nullopt;
    if (!axes || axes->size() != 1 || (node.inputs.size() > 4 && node.inputs[4] && (!steps || (*steps)[0] != 1))) {
      return std::nullopt;
    }
    const auto first = index_of(node.inputs[1]), last = index_of(node.inputs[2]);
    if (!first || !last || first->falls != last->falls || !same(last->offset, first->offset + 1)) return std::nullopt;
    return picked(node.inputs[0], (*axes)[0], first);
  }

 private:
  Dim find_trips() const {
    const ir::Value* m = loop_.inputs.empty() ? nullptr : loop_.inputs[0];
    const ir::Value* cond = loop_.inputs.size() > 1 ? loop_.inputs[1] : nullptr;
    if (!m || (cond && !(is_true(*cond) && condition_stays_true(body_)))) return {};
    const Dim count = number(m);
    return is_at_least(count, 0) ? count : Dim();
  }

  static bool is_true(const ir::Value& v) {
    return v.is_constant() && v.constant.type() == ElementType::kBool && v.constant.element_count() == 1 &&
           *v.constant.data<bool>();
  }

  Dim number(const ir::Value* v) const {
    const Tensor* t = v->is_constant() ? &v->constant : known_.constant(v);
    if (t) return is_integer(t->type()) && t->element_count() == 1 ? Dim(t->int64_at(0)) : Dim();
    const Shape* symbols = known_.symbols(v);
    return symbols && symbols->size() == 1 ? (*symbols)[0] : Dim();
  }

  std::optional<Index> index_of(const ir::Value* v) const {
    if (!v || !is_one_element(v)) return std::nullopt;
    if (v == body_.inputs[0]) return Index{};
    const ir::Node* node = v->producer;
    if (is(node, {"Unsqueeze", "Squeeze", "Reshape", "Identity"})) return index_of(node->inputs[0]);
    if (is(node, {"Cast"}) && (v->type.element == ElementType::kInt64 || v->type.element == ElementType::kInt32)) {
      return index_of(node->inputs[0]);
    }
    if (is(node, {"Add", "Sub"})) return sum(*node);
    return std::nullopt;
  }

  std::optional<Index> sum(const ir::Node& node) const {
    const bool subtracts = node.op->name == "Sub";
    if (auto left = index_of(node.inputs[0])) {
      const Dim by = number(node.inputs[1]);
      if (by.is_unknown()) return std::nullopt;
      left->offset = subtracts ? left->offset - by : left->offset + by;
      return left;
    }
    auto right = index_of(node.inputs[1]);
    const Dim from = number(node.inputs[0]);
    if (!right || from.is_unknown()) return std::nullopt;
    right->offset = subtracts ? from - right->offset : from + right->offset;
    right->falls ^= subtracts;
    return right;
  }

  std::optional<Picked> picked(ir::Value* whole, int64_t axis, const std::optional<Index>& index) const {
    if (!index || !whole || (!whole->is_constant() && body_.contains(whole->owner))) return std::nullopt;
    if (!whole->type.is_tensor() || !whole->type.has_shape || is_string(whole->type.element)) return std::nullopt;
    const auto rank = static_cast<int64_t>(whole->type.shape.size());
    Picked p{whole, axis < 0 ? axis + rank : axis, {}, {}, index->falls};
    p.low = p.reverse ? index->offset - trips_ + 1 : index->offset;
    p.high = p.low + trips_;
    const Dim& size = whole->type.shape[static_cast<size_t>(p.axis)];
    const bool is_all = p.low.is_known(0) && same(p.high, size);
    const bool is_part = p.low.is_known() && p.high.is_known() && p.low.value() >= 0 && size.is_known() &&
                         p.high.value() <= size.value();
    if (!is_all && !is_part) return std::nullopt;
    return p;
  }

  const ir::Node& loop_;
  const ir::Region& body_;
  const Inference& known_;
  const Dim trips_;
};

// Makes a Scan of it.
class Converter {
 public:
  Converter(ir::Graph& graph, ir::Region& region, size_t at, const CountedLoop& counted, Journal* journal)
      : graph_(graph),
        region_(region),
        at_(at),
        loop_(*region.nodes[at]),
        body_(*loop_.region("body")),
        counted_(counted),
        journal_(journal) {}

  // Returns how many nodes were put before it.
  size_t run() {
    if (counted_.trips().is_unknown() || !can_be_scan()) return 0;
    take_gathers(body_);
    if (elements_.empty() && !carries_nothing()) return 0;
    drop_unread(body_);
    if (elements_.empty() || is_read(body_, body_.inputs[0])) add_counter();
    become_scan();
    return added_;
  }

 private:
  // States and rows are tensors that keep their types.
  bool can_be_scan() const {
    const size_t states = body_.inputs.size() - 2;
    for (size_t i = 0; i < states; ++i) {
      const Type &before = loop_.inputs[2 + i]->type, &in = body_.inputs[2 + i]->type,
                 &out = body_.outputs[1 + i]->type;
      if (!is_fixed(in) || !is_fixed(out) || !same_type(before, in) || !same_type(in, out)) return false;
    }
    return std::all_of(body_.outputs.begin() + 1 + static_cast<std::ptrdiff_t>(states), body_.outputs.end(),
                       [](const ir::Value* v) { return !v || is_fixed(v->type); });
  }

  // A map over the counter.
  bool carries_nothing() const {
    const size_t states = body_.inputs.size() - 2;
    return std::equal(body_.inputs.begin() + 2, body_.inputs.end(), body_.outputs.begin() + 1) &&
           body_.outputs.size() > 1 + states && is_read(body_, body_.inputs[0]);
  }

  static bool is_fixed(const Type& type) { return type.is_concrete() && !is_string(type.element); }
  static bool same_type(const Type& a, const Type& b) {
    return a.is_tensor() && a.has_shape && a.element == b.element && same(a.shape, b.shape);
  }

  void take_gathers(ir::Region& region) {
    for (size_t i = 0; i < region.nodes.size(); ++i) {
      ir::Node& node = *region.nodes[i];
      for (auto& inner : node.regions) take_gathers(*inner);
      if (!is(&node, {"Gather"}) || !node.outputs[0]) continue;
      const auto picked = counted_.picked_by(node);
      if (!picked) continue;
      note_of_loop(journal_, Change::kScanned, loop_, node);
      become_element(node, *picked, element_of(*picked, std::string(node.name)));
    }
  }

  // The node's result is the element of the trip, with the axes of its index in place of the one that was picked from.
  void become_element(ir::Node& node, const Picked& picked, ir::Value* element) {
    std::vector<int64_t> axes(node.inputs[1]->type.shape.size());
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = picked.axis + static_cast<int64_t>(i);
    const OpDef& op = require_op(axes.empty() ? "Identity" : "Unsqueeze");
    node.op = &op;
    node.version = &op.newest();
    node.attributes = {};
    node.inputs[0] = element;
    if (axes.empty()) {
      node.inputs.resize(1);
      replaced_[node.outputs[0]] = element;
    } else {
      node.inputs[1] = graph_.new_constant(std::string(node.name) + ":axes", Tensor::of_int64(axes));
    }
    node.input_count = static_cast<uint32_t>(node.inputs.size());
  }

  ir::Value* element_of(const Picked& p, const std::string& name) {
    for (const auto& [other, element] : elements_) {
      if (other.whole == p.whole && other.axis == p.axis && same(other.low, p.low) && other.reverse == p.reverse) {
        return element;
      }
    }
    Type type = p.whole->type;
    type.shape.erase(static_cast<size_t>(p.axis));
    ir::Value* element = graph_.new_value(name + ":element", std::move(type), &body_);
    elements_.emplace_back(p, element);
    wholes_.push_back(along_first_axis(p, name));
    return element;
  }

  // --- before the loop

  ir::Node* before(std::string_view op_name, const std::string& name, std::string_view domain = "") {
    const OpDef& op = require_op(op_name, domain);
    return graph_.new_node(&region_, &op, &op.newest(), name, at_ + added_++);
  }

  ir::Value* along_first_axis(const Picked& p, const std::string& name) {
    ir::Value* part = part_of(p, name);
    if (p.axis == 0) return part;
    Shape shape{counted_.trips()};
    for (size_t i = 0; i < part->type.shape.size(); ++i) {
      if (i != static_cast<size_t>(p.axis)) shape.push_back(part->type.shape[i]);
    }
    ir::Node* node = before("MoveAxis", name + ":whole", "treadle");
    node->attributes.set(ir::Attribute::of("from", p.axis));
    node->attributes.set(ir::Attribute::of("to", 0));
    graph_.add_input(node, part);
    return graph_.add_output(node, name + ":whole", Type::tensor(part->type.element, std::move(shape)));
  }

  ir::Value* part_of(const Picked& p, const std::string& name) {
    const auto axis = static_cast<size_t>(p.axis);
    if (p.low.is_known(0) && same(p.high, p.whole->type.shape[axis])) return p.whole;
    ir::Node* node = before("Slice", name + ":part");
    graph_.add_input(node, p.whole);
    for (const int64_t n : {p.low.value(), p.high.value(), p.axis}) {
      graph_.add_input(node, graph_.new_constant(name + ":part", Tensor::of_int64(std::vector<int64_t>{n})));
    }
    Type type = p.whole->type;
    type.shape[axis] = counted_.trips();
    return graph_.add_output(node, name + ":part", std::move(type));
  }

  // The counter as a scan input: 0, 1, 2, ...
  void add_counter() {
    const std::string name = std::string(loop_.name) + ":trips";
    ir::Value* count = loop_.inputs[0];
    if (!count->type.shape.empty()) {
      ir::Node* scalar = before("Squeeze", name);
      graph_.add_input(scalar, count);
      count = graph_.add_output(scalar, name, Type::tensor(ElementType::kInt64, Shape{}));
    }
    ir::Node* range = before("Range", name);
    for (ir::Value* v : {constant(name, 0), count, constant(name, 1)}) graph_.add_input(range, v);
    wholes_.push_back(
        graph_.add_output(range, name, Type::tensor(ElementType::kInt64, Shape{max(counted_.trips(), 0)})));
    elements_.emplace_back(Picked{}, body_.inputs[0]);
  }

  ir::Value* constant(const std::string& name, int64_t n) {
    return graph_.new_constant(name, Tensor::scalar<int64_t>(ElementType::kInt64, n));
  }

  // --- the loop itself

  void become_scan() {
    const OpDef& op = require_op("Scan");
    loop_.op = &op;
    loop_.version = &op.newest();
    loop_.attributes = {};
    for (size_t i = std::min<size_t>(loop_.inputs.size(), 2); i-- > 0;) loop_.inputs.erase(i);
    const ir::Value* condition = body_.inputs[1];
    body_.inputs.erase(body_.inputs.begin(), body_.inputs.begin() + 2);
    body_.outputs.erase(body_.outputs.begin());
    if (!body_.output_types.empty()) body_.output_types.erase(body_.output_types.begin());
    std::vector<int64_t> directions;
    for (size_t i = 0; i < elements_.size(); ++i) {
      loop_.inputs.push_back(wholes_[i]);
      body_.inputs.push_back(elements_[i].second);
      directions.push_back(elements_[i].first.reverse ? 1 : 0);
    }
    loop_.input_count = static_cast<uint32_t>(loop_.inputs.size());
    loop_.attributes.set(ir::Attribute::of("num_scan_inputs", static_cast<int64_t>(directions.size())));
    loop_.attributes.set(ir::Attribute::of("scan_input_directions", std::move(directions)));
    replaced_[const_cast<ir::Value*>(condition)] =
        graph_.new_constant(std::string(loop_.name) + ":true", Tensor::scalar<bool>(ElementType::kBool, true));
    ir::replace_uses(body_, replaced_);
  }

  static bool is_read(const ir::Region& region, const ir::Value* v) {
    if (std::find(region.outputs.begin(), region.outputs.end(), v) != region.outputs.end()) return true;
    return std::any_of(region.nodes.begin(), region.nodes.end(), [&](const auto& node) {
      return std::find(node->inputs.begin(), node->inputs.end(), v) != node->inputs.end() ||
             std::any_of(node->regions.begin(), node->regions.end(), [&](const auto& r) { return is_read(*r, v); });
    });
  }

  // Nodes that only made indices, or that are gathers no more.
  void drop_unread(ir::Region& region) {
    for (size_t i = region.nodes.size(); i-- > 0;) {
      const ir::Node& node = *region.nodes[i];
      for (auto& inner : region.nodes[i]->regions) drop_unread(*inner);
      const bool is_gone = node.outputs.size() == 1 && node.outputs[0] && replaced_.contains(node.outputs[0]);
      const bool is_index =
          is(&node, {"Add", "Sub", "Cast", "Unsqueeze", "Squeeze", "Reshape"}) && !is_read(region, node.outputs[0]);
      if (is_gone || is_index) region.nodes.erase(region.nodes.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  ir::Graph& graph_;
  ir::Region& region_;
  const size_t at_;
  ir::Node& loop_;
  ir::Region& body_;
  const CountedLoop& counted_;
  Journal* journal_;
  std::vector<std::pair<Picked, ir::Value*>> elements_;
  std::vector<ir::Value*> wholes_;  // of elements_
  std::unordered_map<ir::Value*, ir::Value*> replaced_;
  size_t added_ = 0;
};

bool is_loop(const ir::Node& node) {
  return node.op->control == Control::kLoop;
}

// Of Slices of one position; returns whether there were any.
bool slices_to_gathers(ir::Graph& graph, ir::Region& body, const CountedLoop& counted) {
  bool any = false;
  for (auto& node : body.nodes) {
    for (auto& inner : node->regions) any |= slices_to_gathers(graph, *inner, counted);
    if (!is(node.get(), {"Slice"})) continue;
    const auto picked = counted.picked_by(*node);
    if (!picked) continue;
    const OpDef& op = require_op("Gather");
    node->op = &op;
    node->version = &op.newest();
    node->attributes = {};
    node->attributes.set(ir::Attribute::of("axis", picked->axis));
    node->inputs.resize(2);
    node->input_count = 2;
    any = true;
  }
  return any;
}

template <class Fn>
void for_each_loop(ir::Region& region, const Inference& known, const Fn& fn) {
  for (size_t at = 0; at < region.nodes.size(); ++at) {
    for (auto& body : region.nodes[at]->regions) for_each_loop(*body, known, fn);
    if (!is_loop(*region.nodes[at])) continue;
    const CountedLoop counted(*region.nodes[at], known);
    if (!counted.trips().is_unknown()) at += fn(region, at, counted);
  }
}

bool has_loop(const ir::Graph& graph) {
  bool any = false;
  ir::for_each_node(graph.top(), [&](const ir::Node& node) { any |= is_loop(node); });
  return any;
}

}  // namespace

void scan_counted_loops(ir::Graph& graph, Journal* journal) {
  if (!has_loop(graph)) return;
  constexpr InferenceOptions kOptions{.fold = false, .trust_containers = false, .keep_declared = false};
  auto known = std::make_unique<Inference>(kOptions);
  if (!known->infer(graph.top()).ok()) return;
  bool changed = false;
  for_each_loop(graph.top(), *known, [&](ir::Region& region, size_t at, const CountedLoop& counted) {
    changed |= slices_to_gathers(graph, *region.nodes[at]->region("body"), counted);
    changed |= lists_to_rows(graph, region, at, counted.trips(), journal);
    return size_t{0};
  });
  if (changed) {
    known = std::make_unique<Inference>(kOptions);
    if (!known->infer(graph.top()).ok()) return;
  }
  for_each_loop(graph.top(), *known, [&](ir::Region& region, size_t at, const CountedLoop& counted) {
    return Converter(graph, region, at, counted, journal).run();
  });
}

}  // namespace treadle::opt
