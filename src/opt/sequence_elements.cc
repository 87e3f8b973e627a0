// A loop over a list, in the form to which SequenceMap is lowered and which exporters write,
//
//   s = SplitToSequence(x)
//   t = Loop(SequenceLength(s), t = SequenceEmpty(); i: t' = SequenceInsert(t, f(SequenceAt(s, i))))
//
// becomes  y = Loop(size of x; i: y = f(Gather(x, i)));  t = SplitToSequence(y)
//
// Its sizes are known, and the rewrites of loops can treat it further. The elements of a list are found in the nodes
// that make it. The elements of a caller's list are known if the plan is for lists of elements of one shape. Lists that
// other loops and Ifs return are unknown.
#include "opt/sequence_elements.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/stop.h"
#include "op/loop_view.h"
#include "op/node.h"
#include "op/registry.h"
#include "opt/builder.h"
#include "opt/loop_positions.h"
#include "opt/loop_sequences.h"
#include "opt/match.h"
#include "opt/stacked.h"

namespace treadle::opt {

namespace {

constexpr InferenceOptions kTypes{.fold = false, .trust_containers = false, .keep_declared = false, .fails_late = true};
// Elements of tensors that are copied together: bounds memory, to 16 MB of floats.
constexpr int64_t kMostStacked = int64_t{1} << 22;

std::optional<int64_t> single_constant(const ir::Value* v) {
  const bool fits = v && v->is_constant() && is_integer(v->constant.type()) && v->constant.element_count() == 1;
  return fits ? std::optional(v->constant.int64_at(0)) : std::nullopt;
}

// The tensor that SplitToSequence cuts. Element i is [i * length, (i + 1) * length) of `axis`, or lacks that axis.
struct Cut {
  ir::Value* tensor = nullptr;
  int64_t axis = 0;
  int64_t length = 1;
  bool keeps_axis = false;
  Dim count = {};
};

std::optional<Cut> cut_of(const ir::Value* list) {
  const ir::Node* node = list->producer;
  if (!is(node, "SplitToSequence") || !node->inputs[0]->type.has_shape) return std::nullopt;
  ir::Value* tensor = node->inputs[0];
  const Shape& shape = tensor->type.shape;
  const auto rank = static_cast<int64_t>(shape.size());
  Cut cut{tensor, node->attributes.get_int("axis", 0)};
  if (cut.axis < 0) cut.axis += rank;
  if (cut.axis < 0 || cut.axis >= rank || is_string(tensor->type.element)) return std::nullopt;
  cut.count = shape[static_cast<size_t>(cut.axis)];
  cut.keeps_axis = node->attributes.get_int("keepdims", 1) != 0;
  if (node->inputs.size() < 2 || !node->inputs[1]) return cut;
  const auto length = single_constant(node->inputs[1]);
  if (!length || node->inputs[1]->constant.rank() != 0 || *length < 1) return std::nullopt;
  cut.keeps_axis = true;
  cut.length = *length;
  if (cut.length == 1) return cut;
  if (!cut.count.is_known() || cut.count.value() % cut.length != 0) return std::nullopt;
  cut.count = cut.count.value() / cut.length;
  return cut;
}

// The tensors of a list that the model builds one by one.
std::optional<std::vector<ir::Value*>> parts_of(const ir::Value* list) {
  const ir::Node* node = list->producer;
  if (is(node, "SequenceConstruct")) return std::vector<ir::Value*>(node->inputs.begin(), node->inputs.end());
  if (is(node, "SequenceEmpty")) return std::vector<ir::Value*>();
  if (!is(node, "SequenceInsert") || (node->inputs.size() > 2 && node->inputs[2])) return std::nullopt;
  auto parts = parts_of(node->inputs[0]);
  if (parts) parts->push_back(node->inputs[1]);
  return parts;
}

bool can_be_stacked(const std::vector<ir::Value*>& parts) {
  if (parts.empty()) return false;
  const Type& first = parts[0]->type;
  if (!first.is_concrete() || is_string(first.element)) return false;
  const auto is_like_first = [&](const ir::Value* v) {
    return v->type.is_concrete() && v->type.element == first.element && same(v->type.shape, first.shape);
  };
  return std::all_of(parts.begin(), parts.end(), is_like_first) &&
         count_of(*parts[0]) <= kMostStacked / static_cast<int64_t>(parts.size());
}

class Lists {
 public:
  Lists(ir::Graph& graph, std::span<const Dim> lengths, Remarks* remarks) : graph_(graph), remarks_(remarks) {
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (!lengths[i].is_unknown()) given_.emplace(graph.top().inputs[i], lengths[i]);
    }
  }

  bool run() {
    Inference known(kTypes);
    if (!known.infer(graph_.top()).ok()) return false;
    read(graph_.top(), known);
    ir::replace_uses(graph_, replaced_);
    return changed_ || make_rows(graph_.top(), known);
  }

 private:
  // The tensor with the elements of a list: element i is [i] along `axis` of `whole`.
  struct Elements {
    ir::Value* whole;
    int64_t axis;
  };

  // --- readers of lists

  void read(ir::Region& region, const Inference& known) {
    for (size_t at = 0; at < region.nodes.size(); ++at) {
      if (stop_requested()) return;
      ir::Node& node = *region.nodes[at];
      if (is(&node, "SequenceLength")) measure(node);
      if (is(&node, "SequenceAt")) pick_one(node);
      if (node.op->control == Control::kLoop) {
        const CountedLoop counted(node, known);
        read_by_counter(LoopEditor(node), counted);
      }
      for (auto& inner : node.regions) read(*inner, known);
      while (region.nodes[at].get() != &node) ++at;  // skips nodes that were put before it
    }
  }

  void measure(ir::Node& length) {
    ir::Value* list = length.inputs[0];
    if (const auto parts = parts_of(list)) return become(length, number(static_cast<int64_t>(parts->size())));
    if (given_.contains(list)) return become(length, size_of(elements_of(list)->whole, 0, length));
    const auto cut = cut_of(list);
    if (!cut) return;
    if (cut->count.is_known()) return become(length, number(cut->count.value()));
    become(length, size_of(cut->tensor, cut->axis, length));
  }

  // Replaces a SequenceAt at a constant position.
  void pick_one(ir::Node& at) {
    const auto parts = parts_of(at.inputs[0]);
    const auto given = single_constant(at.inputs[1]);
    if (!parts || !given) return;
    const auto count = static_cast<int64_t>(parts->size());
    const int64_t position = *given < 0 ? *given + count : *given;
    if (position >= 0 && position < count) become(at, (*parts)[static_cast<size_t>(position)]);
  }

  void read_by_counter(const LoopEditor& loop, const CountedLoop& counted) {
    ir::for_each_node(loop.body(), [&](ir::Node& node) {
      if (!is(&node, "SequenceAt") || node.inputs[0]->owner == nullptr) return;
      const ir::Value* list = node.inputs[0];
      if (loop.body().contains(list->owner) || !is_inside(node, loop, counted)) return;
      const auto elements = elements_of(list);
      if (!elements) return;
      note_of_loop(remarks_, Change::kFused, loop.node(), node, "Gather");
      become_gather(node, *elements);
    });
  }

  // Whether the position is inside of the list in all iterations: its numbers are known, or the loop runs once for each
  // element.
  bool is_inside(const ir::Node& at, const LoopView& loop, const CountedLoop& counted) const {
    if (counted.stays_inside(at.inputs[1], length_of(at.inputs[0]))) return true;
    if (!loop.trip_count() || at.inputs[1] != loop.counter()) return false;
    const auto length = lengths_.find(loop.trip_count());
    return length != lengths_.end() && length->second == at.inputs[0];
  }

  Dim length_of(const ir::Value* list) const {
    if (const auto found = given_.find(list); found != given_.end()) return found->second;
    if (const auto parts = parts_of(list)) return static_cast<int64_t>(parts->size());
    const auto cut = cut_of(list);
    return cut ? cut->count : Dim();
  }

  void become_gather(ir::Node& node, const Elements& elements) {
    treadle::become(node, require_op("Gather"));
    node.attributes.set(ir::Attribute::of("axis", elements.axis));
    node.inputs[0] = elements.whole;
    changed_ = true;
  }

  void become(ir::Node& node, ir::Value* result) {
    if (is(&node, "SequenceLength")) lengths_[result] = lengths_[node.outputs[0]] = node.inputs[0];
    replaced_[node.outputs[0]] = result;
    changed_ = true;
  }

  // --- tensors of elements

  // The size of `axis`, as a scalar, in front of `user`.
  ir::Value* size_of(ir::Value* whole, int64_t axis, const ir::Node& user) {
    Builder build(graph_, *user.parent, position(user));
    ir::Value* sizes = build.call("Shape", {whole}, Type::tensor(ElementType::kInt64, Shape{1}), user.name,
                                  {ir::Attribute::of("start", axis), ir::Attribute::of("end", axis + 1)});
    return build.call("Squeeze", {sizes}, Type::tensor(ElementType::kInt64, Shape{}), user.name);
  }

  std::optional<Elements> elements_of(const ir::Value* list) {
    if (const auto found = elements_.find(list); found != elements_.end()) return found->second;
    std::optional<Elements> elements;
    if (const auto found = given_.find(list); found != given_.end()) {
      elements = Elements{given_as_one(list, found->second), 0};
    } else if (const auto parts = parts_of(list)) {
      if (can_be_stacked(*parts)) elements = Elements{stacked(list, *parts), 0};
    } else if (const auto cut = cut_of(list)) {
      elements = Elements{cut->keeps_axis ? with_length(list, *cut) : cut->tensor, cut->axis};
    }
    elements_[list] = elements;
    return elements;
  }

  // Splits the cut axis into two: the number of elements and their length.
  ir::Value* with_length(const ir::Value* list, const Cut& cut) {
    Type type = cut.tensor->type;
    const auto axis = static_cast<size_t>(cut.axis);
    type.shape[axis] = cut.count;
    type.shape.insert(axis + 1, Dim(cut.length));
    if (type.is_concrete()) return reshaped(list, cut.tensor, std::move(type));
    return behind(list, "Unsqueeze", {cut.tensor, int64s(list, {cut.axis + 1})}, std::move(type));
  }

  // Joins the elements of a caller's list. This cannot fail, since there is at least one element and all have one
  // shape.
  ir::Value* given_as_one(const ir::Value* list, const Dim& length) {
    Type type = *list->type.child;
    std::vector<int64_t> dims{length.value_or(-1)};
    for (const int64_t d : known_dims(type.shape)) dims.push_back(d);
    type.shape.insert(0, length);
    ir::Value* joined = behind(list, "ConcatFromSequence", {const_cast<ir::Value*>(list)}, Type::tensor(type.element),
                               {ir::Attribute::of("axis", 0), ir::Attribute::of("new_axis", 1)});
    return behind(
        list, "EnsureShape", {joined}, std::move(type),
        {ir::Attribute::of("dims", std::move(dims)), ir::Attribute::of("symbol", std::string(length.symbol_name()))});
  }

  ir::Value* stacked(const ir::Value* list, const std::vector<ir::Value*>& parts) {
    Type type = parts[0]->type;
    Type row = type;
    row.shape.insert(0, Dim(1));
    type.shape.insert(0, Dim(static_cast<int64_t>(parts.size())));
    std::vector<ir::Value*> rows;
    for (ir::Value* part : parts) rows.push_back(reshaped(list, part, row));
    return behind(list, "Concat", rows, std::move(type), {ir::Attribute::of("axis", 0)});
  }

  ir::Value* reshaped(const ir::Value* list, ir::Value* v, Type type) {
    const Dims dims = known_dims(type.shape);
    ir::Value* sizes = int64s(list, {dims.begin(), dims.end()});
    return behind(list, "Reshape", {v, sizes}, std::move(type), {ir::Attribute::of("allowzero", 1)});
  }

  // Adds a node behind the maker of `list`, and behind all nodes that were added there before.
  ir::Value* behind(const ir::Value* list, std::string_view op, const std::vector<ir::Value*>& inputs, Type type,
                    std::initializer_list<ir::Attribute> attributes = {}) {
    ir::Node*& last = last_behind_[list->producer];
    if (!last) last = list->producer;
    ir::Region& region = last ? *last->parent : *list->owner;
    ir::Value* made = Builder(graph_, region, last ? position(*last) + 1 : 0)
                          .call(op, inputs, std::move(type), std::string(list->name) + ":elements", attributes);
    last = made->producer;
    return made;
  }

  ir::Value* int64s(const ir::Value* list, const std::vector<int64_t>& numbers) {
    return graph_.new_constant(list->name, Tensor::of_int64(numbers));
  }

  static size_t position(const ir::Node& node) {
    const auto& nodes = node.parent->nodes;
    const auto at = std::find_if(nodes.begin(), nodes.end(), [&](auto& n) { return n.get() == &node; });
    return static_cast<size_t>(at - nodes.begin());
  }

  ir::Value* number(int64_t n) {
    return graph_.new_constant("length", Tensor::scalar<int64_t>(ElementType::kInt64, n));
  }

  // --- writers of lists

  bool make_rows(ir::Region& top, const Inference& known) {
    bool any = false;
    visit_nodes(top, [&](ir::Region& region, size_t at) {
      if (region.nodes[at]->op->control != Control::kLoop) return at;
      const CountedLoop counted(*region.nodes[at], known);
      if (!counted.iterations().is_unknown()) any |= lists_to_rows(graph_, region, at, counted.iterations(), remarks_);
      return at;
    });
    return any;
  }

  ir::Graph& graph_;
  Remarks* remarks_;
  std::unordered_map<const ir::Value*, Dim> given_;  // the caller's lists whose elements have one shape
  std::unordered_map<const ir::Value*, std::optional<Elements>> elements_;
  std::unordered_map<const ir::Value*, const ir::Value*> lengths_;  // the list of which a value is the length
  std::unordered_map<ir::Value*, ir::Value*> replaced_;
  std::unordered_map<const ir::Node*, ir::Node*> last_behind_;
  bool changed_ = false;
};

bool has_lists(const ir::Graph& graph) {
  bool any = false;
  ir::for_each_node(graph.top(), [&](const ir::Node& node) {
    any |= is(&node, "SequenceAt") || is(&node, "SequenceInsert") || is(&node, "SequenceLength");
  });
  return any;
}

}  // namespace

bool read_lists_as_tensors(ir::Graph& graph, std::span<const Dim> lengths, Remarks* remarks) {
  return has_lists(graph) && Lists(graph, lengths, remarks).run();
}

}  // namespace treadle::opt
