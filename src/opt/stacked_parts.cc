// A part that is taken out of a value which was stacked before is the value that was put in:
//
//   s = Concat(Unsqueeze(a), Unsqueeze(b)); y = Gather(s, 1)   becomes   y = b
//   s = Concat(a, b); x, y = Split(s)                          becomes   x = a, y = b
//   s = Concat(a, b); y = Slice(s)                             becomes   y = a, if it takes all of a and no more
//   y = Squeeze(Unsqueeze(a))                                  becomes   y = a
//
// The part is taken along the axis of Concat, and sizes along that axis are known. The stacking nodes stay; they may
// have no reader left. Then no node checks any more whether a and b fit together.
#include "opt/stacked_parts.h"

#include <algorithm>
#include <unordered_map>

#include "op/axes.h"
#include "opt/builder.h"
#include "opt/match.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

// kNone: unknown.
constexpr int64_t kNone = -1;
int64_t size_along(const ir::Value* v, int64_t axis) {
  if (!v || !v->type.is_tensor() || !v->type.has_shape || axis < 0 || axis >= v->type.rank()) return kNone;
  return v->type.shape[static_cast<size_t>(axis)].value_or(kNone);
}

std::optional<int64_t> one_number(const std::optional<std::vector<int64_t>>& numbers) {
  return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
}

Taken gathered(const ir::Node& gather) {
  ir::Value *data = gather.inputs[0], *index = gather.inputs[1];
  const auto number = one_number(constant_ints(gather, 1));
  if (!number || !index->type.has_shape || index->type.rank() > 1 || !data->type.has_shape) return {};
  const int64_t axis = from_front(gather.attributes.get_int("axis"), data->type.rank());
  const int64_t size = size_along(data, axis);
  const int64_t at = from_front(*number, size);
  if (size == kNone || at < 0 || at >= size) return {};
  return {data, axis, index->type.rank() == 0, {{gather.outputs[0], at, at + 1}}};
}

Taken sliced(const ir::Node& slice) {
  ir::Value* data = slice.inputs[0];
  const auto begin = one_number(constant_axes(slice, 1, "starts"));
  const auto end = one_number(constant_axes(slice, 2, "ends"));
  const auto axes = constant_axes(slice, 3);
  const bool steps = slice.inputs.size() > 4 && slice.inputs[4];
  if (!begin || !end || !axes || axes->size() > 1 || !data->type.has_shape) return {};
  if (steps && one_number(constant_ints(slice, 4)) != 1) return {};
  const int64_t axis = axes->empty() ? 0 : from_front(axes->front(), data->type.rank());
  const int64_t size = size_along(data, axis);
  if (size == kNone) return {};
  const auto inside = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  return {data, axis, false, {{slice.outputs[0], inside(*begin), inside(*end)}}};
}

Taken split(const ir::Node& node) {
  ir::Value* data = node.inputs[0];
  if (!data->type.has_shape) return {};
  Taken taken{data, from_front(node.attributes.get_int("axis"), data->type.rank()), false, {}};
  int64_t at = 0;
  for (ir::Value* out : node.outputs) {
    const int64_t size = size_along(out, taken.axis);
    if (size == kNone) return {};
    taken.parts.push_back({out, at, at + size});
    at += size;
  }
  return taken;
}

// Replaces the results of nodes that take parts.
class Taker {
 public:
  Taker(ir::Graph& graph, Remarks* remarks) : graph_(graph), remarks_(remarks) {}

  void run() {
    rewrite_nodes(graph_.top(), replaced_, [this](ir::Region& region, size_t at) { return visit(region, at); });
    ir::replace_uses(graph_, replaced_);
  }

 private:
  size_t visit(ir::Region& region, size_t at) {
    const ir::Node& node = *region.nodes[at];
    if (is(node, "Squeeze")) {
      const ir::Value* data = node.inputs[0];
      const auto axis = one_number(constant_axes(node, 1));
      if (axis && data->type.has_shape) {
        replace(node.outputs[0], without_axis(data, from_front(*axis, data->type.rank())), region, node);
      }
      return at;
    }
    const Taken taken = taken_by(node);
    if (!taken.whole) return at;
    Builder build(graph_, region, at);
    const std::vector<Part> parts = parts_of(taken.whole, taken.axis);
    for (const Part& wanted : taken.parts) {
      const auto part = std::ranges::find_if(parts, [&](const Part& p) { return p.covers(wanted); });
      if (part == parts.end()) continue;
      ir::Value* value = taken.drops_axis ? squeezed(build, part->value, taken.axis, *wanted.value) : part->value;
      replace(wanted.value, value, region, node);
    }
    return build.at();
  }

  void replace(ir::Value* old, ir::Value* value, const ir::Region& region, const ir::Node& node) {
    if (!value || !has_sizes_of(value->type, old->type)) return;
    note(remarks_, Change::kElided, region, node);
    replaced_[old] = value;
  }

  static ir::Value* squeezed(Builder& build, ir::Value* part, int64_t axis, const ir::Value& like) {
    if (ir::Value* inside = without_axis(part, axis)) return inside;
    Type type = part->type;
    type.shape.erase(static_cast<size_t>(axis));
    const std::string name(like.name);
    return build.call("Squeeze", {part, build.int64s({axis}, name + ":axis")}, std::move(type), name);
  }

  ir::Graph& graph_;
  Remarks* remarks_;
  std::unordered_map<ir::Value*, ir::Value*> replaced_;
};

}  // namespace

Taken taken_by(const ir::Node& node) {
  return is(node, "Gather")  ? gathered(node)
         : is(node, "Slice") ? sliced(node)
         : is(node, "Split") ? split(node)
                             : Taken();
}

std::vector<Part> parts_of(const ir::Value* v, int64_t axis) {
  const ir::Node* concat = v->producer;
  if (!is(concat, "Concat") || !v->type.has_shape) return {};
  if (from_front(concat->attributes.get_int("axis"), v->type.rank()) != axis) return {};
  std::vector<Part> parts;
  int64_t at = 0;
  for (ir::Value* part : concat->inputs) {
    const int64_t size = size_along(part, axis);
    if (size == kNone) return {};
    parts.push_back({part, at, at + size});
    at += size;
  }
  return parts;
}

ir::Value* without_axis(const ir::Value* v, int64_t axis) {
  const ir::Node* node = v->producer;
  if (!is(node, "Unsqueeze") || !v->type.has_shape) return nullptr;
  const auto put_in = one_number(constant_axes(*node, 1));
  return put_in && from_front(*put_in, v->type.rank()) == axis ? node->inputs[0] : nullptr;
}

bool has_sizes_of(const Type& from, const Type& to) {
  if (!from.is_tensor() || !to.is_tensor() || from.element != to.element) return false;
  if (!to.has_shape) return true;
  if (!from.has_shape || from.rank() != to.rank()) return false;
  return std::ranges::equal(from.shape, to.shape,
                            [](const Dim& a, const Dim& b) { return b.is_unknown() || same(a, b); });
}

void take_stacked_parts(ir::Graph& graph, Remarks* remarks) {
  Taker(graph, remarks).run();
}

}  // namespace treadle::opt
