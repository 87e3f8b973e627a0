// A Loop whose iterations are counted, and that picks its inputs by the iteration's number, becomes a Scan:
//
//   Loop(M, true, h0; i, c, h: x = Gather(X, i); ...)   becomes   Scan(h0, X; h, x: ...)
//
// States must keep their types, and every index must be inside of X. An index beyond the end is an error of its
// iteration, so a Loop that may have one stays as it is. opt/loop_positions.h says what is known about iterations and
// indices, and what has to be known. If sizes and constants do not prove it, nodes check it when the run reaches the
// loop:
//
//   Loop(M, cond, h0; ...)   becomes   If(cond && 1 <= M && M <= size of X) Scan(h0, X[0:M]; ...)
//                                      else Loop(M, cond, ...)
//
// A Slice of one position is turned into a Gather first, and sequences to which the loop appends become scan outputs
// (opt/loop_sequences.h). A Loop that carries nothing from one iteration to the next is a Scan of the counter. If the
// counter has other uses, it becomes a scan input as well.
#include <algorithm>
#include <optional>
#include <unordered_set>

#include "base/stop.h"
#include "infer/inference.h"
#include "op/costs.h"
#include "op/loop_view.h"
#include "op/node.h"
#include "op/place.h"
#include "op/registry.h"
#include "opt/builder.h"
#include "opt/loop_edits.h"
#include "opt/loop_guards.h"
#include "opt/loop_positions.h"
#include "opt/loop_sequences.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/stacked.h"

namespace treadle::opt {

namespace {

// Turns one Loop into a Scan.
class Converter {
 public:
  // `guards`: collects the checks in front of the loop. The Scan runs only if they hold.
  Converter(ir::Graph& graph, ir::Region& region, size_t at, const CountedLoop& counted, Remarks* remarks,
            LoopGuards* guards = nullptr)
      : graph_(graph),
        region_(region),
        at_(at),
        loop_(*region.nodes[at]),
        body_(loop_.body()),
        counted_(counted),
        remarks_(remarks),
        guards_(guards) {}

  // The values that the loop's iterations pick; nullopt if the loop cannot become a Scan, or would gain nothing.
  std::optional<std::vector<Picked>> picks() const {
    if (counted_.iterations().is_unknown() || !can_be_scan()) return std::nullopt;
    std::vector<Picked> found;
    ir::for_each_node(body_, [&](const ir::Node& node) {
      if (!node.outputs[0]) return;
      auto p = counted_.picked_by(node);
      const auto is_it = [&](const Picked& other) {
        return other.whole == p->whole && other.axis == p->axis && same(other.low, p->low);
      };
      if (p && std::none_of(found.begin(), found.end(), is_it)) found.push_back(std::move(*p));
    });
    return found.empty() && !(carries_nothing() && has_counter()) ? std::nullopt : std::optional(std::move(found));
  }

  // Returns the number of nodes put before the loop.
  size_t run() {
    if (!picks()) return 0;
    take_gathers(body_);
    if (counted_.asks()) loop_.set_condition_after(loop_.condition_before());
    drop_unread(body_);
    drop_counters();
    // A loop without picked rows only counts; the remark is about the loop itself.
    if (elements_.empty()) note_of_loop(remarks_, Change::kScanned, loop_.node(), loop_.node());
    if (elements_.empty() || is_read(body_, loop_.counter())) add_counter();
    if (guards_) fix_sizes();
    become_scan();
    return added_;
  }

 private:
  // Whether states and rows are tensors that keep their types.
  bool can_be_scan() const {
    for (size_t i = 0; i < loop_.states(); ++i) {
      const LoopView::State state = loop_.state(i);
      const Type &initial = state.initial->type, &before = state.before->type, &after = state.after->type;
      if (!is_fixed(before) || !is_fixed(after) || !same_type(initial, before) || !same_type(before, after)) {
        return false;
      }
    }
    for (size_t i = 0; i < loop_.scan_outputs(); ++i) {
      const ir::Value* row = loop_.scan_output(i).row;
      if (row && !is_fixed(row->type)) return false;
    }
    return true;
  }

  // Whether the loop is a map over the counter.
  bool carries_nothing() const {
    for (size_t i = 0; i < loop_.states(); ++i) {
      if (!loop_.is_kept(i)) return false;
    }
    return loop_.scan_outputs() > 0 && is_read(body_, loop_.counter());
  }

  static bool is_fixed(const Type& type) { return type.is_concrete() && !is_string(type.element); }
  static bool same_type(const Type& a, const Type& b) {
    return a.is_tensor() && a.has_shape && a.element == b.element && same(a.shape, b.shape);
  }

  void take_gathers(ir::Region& region) {
    for (size_t i = 0; i < region.nodes.size(); ++i) {
      ir::Node& node = *region.nodes[i];
      for (auto& inner : node.regions) take_gathers(*inner);
      if (!is(&node, "Gather") || !node.outputs[0]) continue;
      const auto picked = counted_.picked_by(node);
      if (!picked) continue;
      note_of_loop(remarks_, Change::kScanned, loop_.node(), node);
      become_element(node, *picked, element_of(*picked, std::string(node.name)));
    }
  }

  // Replaces the Gather: its result is the iteration's element, with the axes of the index in place of the picked axis.
  void become_element(ir::Node& node, const Picked& picked, ir::Value* element) {
    std::vector<int64_t> axes(node.inputs[1]->type.shape.size());
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = picked.axis + static_cast<int64_t>(i);
    become(node, require_op(axes.empty() ? "Identity" : "Unsqueeze"));
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
    stacked_.push_back(along_first_axis(p, name));
    return element;
  }

  // --- before the loop

  // Adds a node in front of the loop. The loop and its region move back by one position.
  ir::Value* before(std::string_view op, std::initializer_list<ir::Value*> inputs, Type type, const std::string& name,
                    std::initializer_list<ir::Attribute> attributes = {}) {
    return Builder(graph_, region_, at_ + added_++, &loop_.node()).call(op, inputs, std::move(type), name, attributes);
  }

  ir::Value* along_first_axis(const Picked& p, const std::string& name) {
    ir::Value* part = part_of(p, name);
    if (p.axis == 0) return part;
    Shape shape{counted_.iterations()};
    for (size_t i = 0; i < part->type.shape.size(); ++i) {
      if (i != static_cast<size_t>(p.axis)) shape.push_back(part->type.shape[i]);
    }
    return before("MoveAxis", {part}, Type::tensor(part->type.element, std::move(shape)), name + ":whole",
                  {ir::Attribute::of("from", p.axis), ir::Attribute::of("to", 0)});
  }

  ir::Value* part_of(const Picked& p, const std::string& name) {
    const auto axis = static_cast<size_t>(p.axis);
    const Sum high = p.low + counted_.count();
    if (!guards_ && p.low.number.is_known(0) && same(high.number, p.whole->type.shape[axis])) return p.whole;
    const auto bound = [&](const Sum& sum) {
      return guards_ ? guards_->value(sum)
                     : graph_.new_constant(name + ":part", Tensor::of_int64(std::vector{sum.number.value()}));
    };
    Type type = p.whole->type;
    type.shape[axis] = counted_.iterations();
    ir::Value *first = bound(p.low), *last = bound(high), *along = bound(Sum{p.axis});
    return before("Slice", {p.whole, first, last, along}, std::move(type), name + ":part");
  }

  // Removes states that only count and that only removed indices read.
  void drop_counters() {
    for (size_t state = loop_.states(); state-- > 0;) {
      const auto [initial, in, out, final] = loop_.state(state);
      if (final || !counted_.is_counter(state) || out == in) continue;
      if (count_uses(body_, in) != 1 || count_uses(body_, out) != 1 || out->owner != &body_) continue;
      const ir::Node* step = out->producer;
      std::erase_if(body_.nodes, [&](const auto& node) { return node.get() == step; });
      loop_.remove_state(state);
    }
  }

  // The checks ensure at least one iteration, so the rows have the sizes that the body states.
  void fix_sizes() {
    loop_.take_row_types_from_body();
    for (size_t i = 0; i < loop_.scan_outputs(); ++i) {
      if (ir::Value* whole = loop_.scan_output(i).whole) whole->type.shape[0] = counted_.iterations();
    }
  }

  bool has_counter() const {
    return guards_ || counted_.iterations().is_known() || (!counted_.asks() && loop_.trip_count());
  }

  // The trip count, an int64 of one element.
  ir::Value* iteration_number() {
    if (guards_) return guards_->value(counted_.count());
    if (counted_.iterations().is_known()) return constant(iterations_name(), counted_.iterations().value());
    if (!counted_.asks()) return loop_.trip_count();
    return before("Shape", {stacked_[0]}, Type::tensor(ElementType::kInt64, Shape{1}), iterations_name(),
                  {ir::Attribute::of("start", 0), ir::Attribute::of("end", 1)});
  }

  // Adds the counter as a scan input: 0, 1, 2, ...
  void add_counter() {
    const std::string name = iterations_name();
    ir::Value* count = iteration_number();
    if (!count->type.shape.empty()) {
      count = before("Squeeze", {count}, Type::tensor(ElementType::kInt64, Shape{}), name);
    }
    stacked_.push_back(before("Range", {constant(name, 0), count, constant(name, 1)},
                              Type::tensor(ElementType::kInt64, Shape{max(counted_.iterations(), 0)}), name));
    elements_.emplace_back(Picked{}, loop_.counter());
  }

  std::string iterations_name() const { return std::string(loop_.node().name) + ":iterations"; }

  ir::Value* constant(const std::string& name, int64_t n) {
    return graph_.new_constant(name, Tensor::scalar<int64_t>(ElementType::kInt64, n));
  }

  // --- the loop itself

  void become_scan() {
    ir::Attributes attributes;
    attributes.set(named_as(loop_.node()));
    ir::Value* condition = loop_.condition_before();
    loop_.become_scan(attributes);
    for (size_t i = 0; i < elements_.size(); ++i) {
      loop_.add_scan_input(stacked_[i], elements_[i].second, elements_[i].first.reverse);
    }
    replaced_[condition] =
        graph_.new_constant(std::string(loop_.node().name) + ":true", Tensor::scalar<bool>(ElementType::kBool, true));
    ir::replace_uses(body_, replaced_);
  }

  static bool is_read(const ir::Region& region, const ir::Value* v) {
    if (std::find(region.outputs.begin(), region.outputs.end(), v) != region.outputs.end()) return true;
    return std::any_of(region.nodes.begin(), region.nodes.end(), [&](const auto& node) {
      return std::find(node->inputs.begin(), node->inputs.end(), v) != node->inputs.end() ||
             std::any_of(node->regions.begin(), node->regions.end(), [&](const auto& r) { return is_read(*r, v); });
    });
  }

  // Removes nodes that only made indices, and Gathers that were replaced.
  void drop_unread(ir::Region& region) {
    for (size_t i = region.nodes.size(); i-- > 0;) {
      const ir::Node& node = *region.nodes[i];
      for (auto& inner : region.nodes[i]->regions) drop_unread(*inner);
      const bool is_gone = node.outputs.size() == 1 && node.outputs[0] && replaced_.contains(node.outputs[0]);
      const bool is_index = is_any(&node, {"Add", "And", "Cast", "Greater", "GreaterOrEqual", "Less", "LessOrEqual",
                                           "Reshape", "Squeeze", "Sub", "Unsqueeze"}) &&
                            !is_read(region, node.outputs[0]);
      if (is_gone || is_index) region.nodes.erase(region.nodes.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  ir::Graph& graph_;
  ir::Region& region_;
  const size_t at_;
  LoopEditor loop_;
  ir::Region& body_;
  const CountedLoop& counted_;
  Remarks* remarks_;
  std::vector<std::pair<Picked, ir::Value*>> elements_;
  std::vector<ir::Value*> stacked_;  // the whole tensors of elements_
  LoopGuards* guards_;
  std::unordered_map<ir::Value*, ir::Value*> replaced_;
  size_t added_ = 0;
};

bool is_counting_loop(const ir::Node& node) {
  return node.op->control == Control::kLoop;
}

// Turns Slices of one position into Gathers; returns whether there were any.
bool slices_to_gathers(ir::Graph& graph, ir::Region& body, const CountedLoop& counted) {
  bool any = false;
  for (auto& node : body.nodes) {
    for (auto& inner : node->regions) any |= slices_to_gathers(graph, *inner, counted);
    if (!is(node.get(), "Slice")) continue;
    const auto picked = counted.picked_by(*node);
    if (!picked) continue;
    become(*node, require_op("Gather"));
    node->attributes.set(ir::Attribute::of("axis", picked->axis));
    node->inputs.resize(2);
    node->input_count = 2;
    any = true;
  }
  return any;
}

template <class Fn>
void for_each_loop(ir::Region& top, const Inference& known, const Fn& fn) {
  visit_nodes(top, [&](ir::Region& region, size_t at) {
    ir::Node& node = *region.nodes[at];
    return is_counting_loop(node) ? at + fn(region, at, CountedLoop(node, known)) : at;
  });
}

// For loops without proofs: an If in front of the loop checks the assumptions. The loop stands in both branches, and
// becomes a Scan in one of them. This does not pay inside of other loops: the Scan would read data whose size changes
// in each of their iterations.
class Guarder {
 public:
  Guarder(ir::Graph& graph, const Inference& known, Remarks* remarks)
      : graph_(graph), known_(known), remarks_(remarks) {}

  void walk(ir::Region& region) {
    for (size_t at = 0; at < region.nodes.size(); ++at) {
      if (stop_requested()) return;
      if (is_counting_loop(*region.nodes[at])) {
        at += guard(region, at);
      } else if (region.nodes[at]->op->control == Control::kIf) {
        for (auto& branch : region.nodes[at]->regions) walk(*branch);
      }
    }
  }

 private:
  // Returns the number of nodes put in front of the loop.
  size_t guard(ir::Region& region, size_t at) {
    ir::Node& loop = *region.nodes[at];
    const ir::Region& body = LoopView(loop).body();
    const CountedLoop counted(loop, known_, CountedLoop::Trust::kGuards);
    if (counted.iterations().is_unknown() || ir::count_nodes(body) > kMaxNodes) return 0;
    const std::string name = std::string(loop.name) + ":check";
    LoopGuards guards(graph_, region, at, counted, name);
    const auto picks = Converter(graph_, region, at, counted, nullptr, &guards).picks();
    if (!picks || !pays(body, *picks)) return 0;
    ir::Value* condition = guards.conditions(*picks);
    if (!condition) return guards.added();
    note_of_loop(remarks_, Change::kGuarded, loop, loop);
    // Makes the numbers that the Scan will read, so that it adds no further nodes.
    for (const Picked& p : *picks) {
      guards.value(p.low);
      guards.value(p.low + counted.count());
    }
    const size_t added = guards.added();
    ir::Node& choice = put_into_branches(graph_, region, at + added, condition, name);
    ir::Region& yes = IfView(choice).then_branch();
    slices_to_gathers(graph_, LoopEditor(*yes.nodes[0]).body(), counted);
    Converter(graph_, yes, 0, counted, remarks_, &guards).run();
    TREADLE_ASSERT(guards.added() == added);
    return added;
  }

  // A row of planned memory is a pointer in a Loop as well, and native code inlines small products. Then only maps
  // gain, and products whose weights are read once.
  static bool pays(const ir::Region& body, const std::vector<Picked>& picks) {
    const auto is_of_any_size = [](const Picked& p) { return !p.whole->type.is_concrete(); };
    if (picks.empty() || std::any_of(picks.begin(), picks.end(), is_of_any_size)) return true;
    const Varies varies = [&](const ir::Value* v) { return !is_invariant(v, body); };
    return std::any_of(body.nodes.begin(), body.nodes.end(), [&](const auto& node) {
      return node->op->product == Product::kMatrices && runs_stacked(*node, varies, Dim()) &&
             is_product_with_weights(*node, varies) &&
             count_of(*node->inputs[node->op->factors[1]]) >= costs::kFewWeights;
    });
  }

  // Nodes in a body. There will be two copies of it, so this bounds the time of planning.
  static constexpr size_t kMaxNodes = 256;

  ir::Graph& graph_;
  const Inference& known_;
  Remarks* remarks_;
};

bool has_loop(const ir::Graph& graph) {
  bool any = false;
  ir::for_each_node(graph.top(), [&](const ir::Node& node) { any |= is_counting_loop(node); });
  return any;
}

}  // namespace

void scan_counted_loops(ir::Graph& graph, Remarks* remarks) {
  if (!has_loop(graph)) return;
  constexpr InferenceOptions kOptions{
      .fold = false, .trust_containers = false, .keep_declared = false, .fails_late = true};
  auto known = std::make_unique<Inference>(kOptions);
  if (!known->infer(graph.top()).ok()) return;
  bool changed = false;
  for_each_loop(graph.top(), *known, [&](ir::Region& region, size_t at, const CountedLoop& counted) {
    if (!counted.iterations().is_unknown()) {
      changed |= slices_to_gathers(graph, LoopEditor(*region.nodes[at]).body(), counted);
    }
    changed |= lists_to_rows(graph, region, at, counted.iterations(), remarks);
    changed |= lists_to_growing(graph, region, at, remarks);
    return size_t{0};
  });
  if (changed) {
    known = std::make_unique<Inference>(kOptions);
    if (!known->infer(graph.top()).ok()) return;
  }
  for_each_loop(graph.top(), *known, [&](ir::Region& region, size_t at, const CountedLoop& counted) {
    return counted.iterations().is_unknown() ? 0 : Converter(graph, region, at, counted, remarks).run();
  });
  Guarder(graph, *known, remarks).walk(graph.top());
}

}  // namespace treadle::opt
