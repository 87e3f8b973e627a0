// Makes the kernel of a group of nodes that run as one instruction.
#include <algorithm>

#include "op/elementwise.h"
#include "op/operands.h"
#include "plan/fusion.h"

namespace treadle::plan {

Fusion::Source Fusion::source(const Unit& unit, const ir::Value* v) const {
  Source source{v, 0, operand_of(*v)};
  if (std::find(unit.views.begin(), unit.views.end(), v) == unit.views.end()) return source;
  const ElementwiseForm::View& view = views_.at(v);
  source.value = v->producer->inputs[0];
  source.start = view.start;
  source.operand.strides = view.strides;
  source.operand.start = view.start;
  source.operand.is_part = true;
  return source;
}

namespace {

// Whether `strides` over `dims` are one axis's, for dims that step through positions [first, last).
bool is_one_axis(const Dims& dims, const Dims& strides, int64_t first, int64_t last) {
  int64_t inside = 1, stride = 0;
  bool begun = false;
  for (size_t d = dims.size(); d-- > 0; inside *= dims[d]) {
    const int64_t end = inside * dims[d], from = std::max(inside, first);
    if (end <= from || inside >= last) continue;
    const int64_t here = strides[d] * (from / inside);
    if (!begun) stride = here;
    if (here * first != stride * from) return false;
    begun = true;
  }
  return true;
}

}  // namespace

bool Fusion::is_even(const Unit& unit, const Lines& lines) const {
  const int64_t line = lines.n * lines.inner;
  std::unordered_set<const ir::Value*> made;
  for (const ir::Node* node : unit.nodes) {
    made.insert(node->outputs[0]);
    if (is_alias(*node)) continue;
    const ElementwiseForm& form = this->form(*node);
    const Dims dims = known_dims(node->outputs[0]->type.shape);
    const size_t count = form.kind == ElementwiseForm::Kind::kConversion ? 1 : kernels::info(form.op).inputs;
    for (size_t i = 0; i < count; ++i) {
      const ir::Value* v = node->inputs[count == 1 ? 0 : form.arguments[i]];
      if (made.contains(v)) continue;
      const Dims strides = broadcast_strides(source(unit, v).operand, dims, i == 1 ? form.axis : -1);
      if (!is_one_axis(dims, strides, 1, lines.inner) || !is_one_axis(dims, strides, lines.inner, line)) return false;
    }
  }
  return true;
}

namespace {

using kernels::ElementwiseOp;
using kernels::TileConverter;

// Whether the result of an operation on narrow elements in wide_type() is always a narrow element.
bool stays_narrow(ElementwiseOp op) {
  return op == ElementwiseOp::kMin || op == ElementwiseOp::kMax || op == ElementwiseOp::kBitwiseAnd ||
         op == ElementwiseOp::kBitwiseOr || op == ElementwiseOp::kBitwiseXor;
}

TileConverter one_step(const TileConverter& converter, size_t at) {
  TileConverter step;
  step.steps[0] = converter.steps[at];
  step.step_count = 1;
  return step;
}

}  // namespace

// The values of a group while its plan is built. Narrow elements are widened before operations and narrowed after them,
// each once, and only if a node needs that form.
struct Fusion::Members {
  using Made = kernels::FusedBuilder::Value;
  // At least one is set. Both are the same for elements that are stored in their compute type.
  struct Forms {
    std::optional<Made> stored, wide;
  };
  struct Input {
    const ir::Value* value;
    int64_t start;
    Dims strides;
    Forms forms;
  };

  const Fusion& fusion;
  const Unit& unit;
  FusedGroup& group;
  std::vector<Input> inputs;
  std::unordered_map<const ir::Value*, Forms> made;
  std::unordered_map<const ir::Value*, const ir::Value*> base;  // the value whose memory an alias shares
  std::unordered_map<const ir::Value*, size_t> used;            // uses inside of the group

  Made stored(Forms& forms, ElementType type) {
    if (!forms.stored) {
      forms.stored = group.builder.convert(kernels::make_converter(wide_type(type), type), *forms.wide, type);
    }
    return *forms.stored;
  }
  Made wide(Forms& forms, ElementType type) {
    const ElementType to = wide_type(type);
    if (!forms.wide) {
      forms.wide =
          to == type ? *forms.stored : group.builder.convert(kernels::make_converter(type, to), *forms.stored, to);
    }
    return *forms.wide;
  }

  const ir::Value* resolve(const ir::Value* v) const {
    const auto it = base.find(v);
    return it == base.end() ? v : it->second;
  }

  // `v` as an argument of an operation with a result of `dims`.
  Forms& argument(const ir::Value* v, const Dims& dims, int64_t axis) {
    if (const auto it = made.find(resolve(v)); it != made.end()) return it->second;
    const Fusion::Source from = fusion.source(unit, v);
    Dims strides = broadcast_strides(from.operand, dims, axis);
    for (Input& input : inputs) {
      if (input.value == from.value && input.start == from.start && input.strides == strides) return input.forms;
    }
    const Made read = group.builder.input(v->type.element, dims, strides, from.start);
    inputs.push_back({from.value, from.start, std::move(strides), {read, std::nullopt}});
    group.inputs.push_back(from.value);
    return inputs.back().forms;
  }

  // Storage -> its compute type -> the target's compute type -> target's storage.
  void convert(const ir::Node& node, const TileConverter& converter) {
    const ir::Value *from = node.inputs[0], *to = node.outputs[0];
    const ElementType source = from->type.element, target = to->type.element;
    Forms& x = argument(from, known_dims(to->type.shape), -1);
    if (converter.step_count == 1 && wide_type(target) == target) {
      made[to].stored = group.builder.convert(converter, stored(x, source), target);
      return;
    }
    Made value = wide(x, source);
    size_t at = wide_type(source) == source ? 0 : 1;
    if (wide_type(source) != wide_type(target)) {
      value = group.builder.convert(one_step(converter, at++), value, wide_type(target));
    }
    if (wide_type(target) != target) value = group.builder.convert(one_step(converter, at), value, target);
    made[to].stored = value;
  }

  void apply(const ir::Node& node, const ElementwiseForm& form) {
    const ir::Value* result = node.outputs[0];
    const Dims dims = known_dims(result->type.shape);
    const bool chooses = form.op == ElementwiseOp::kWhere;
    Made arguments[3];
    const size_t count = kernels::info(form.op).inputs;
    for (size_t i = 0; i < count; ++i) {
      const ir::Value* v = node.inputs[form.arguments[i]];
      Forms& forms = argument(v, dims, i == 1 ? form.axis : -1);
      arguments[i] = chooses ? stored(forms, v->type.element) : wide(forms, v->type.element);
    }
    const Made value = group.builder.apply(form.op, std::span(arguments, count), form.params);
    Forms& forms = made[result];
    const ElementType type = result->type.element;
    if (chooses || wide_type(type) == type) {
      forms.stored = value;
      return;
    }
    forms.wide = value;
    if (stays_narrow(form.op)) return;
    stored(forms, type);
    forms.wide.reset();
  }
};

// The operands of reductions follow the wanted outputs, unless an operand is one of these.
void Fusion::add_reductions(const Unit& unit, Members& members) const {
  FusedGroup& group = members.group;
  std::vector<const ir::Value*> reduced = group.outputs;
  for (const ir::Node* node : unit.reductions) {
    const ir::Value* base = members.resolve(node->inputs[0]);
    auto at = std::find(reduced.begin(), reduced.end(), base);
    if (at == reduced.end()) {
      group.builder.output(members.stored(members.made.at(base), base->type.element));
      group.hidden.push_back(base->type.element);
      at = reduced.insert(reduced.end(), base);
    }
    const Lines& lines = lines_.at(node);
    group.line = static_cast<size_t>(lines.outer == 1 ? known_element_count(base->type.shape) : lines.n * lines.inner);
    group.builder.set_line(group.line);
    group.reductions.push_back({node, static_cast<size_t>(at - reduced.begin()), reductions_.at(node)});
  }
}

FusedGroup Fusion::build(const Unit& unit) const {
  FusedGroup group(static_cast<size_t>(known_element_count(unit.nodes[0]->outputs[0]->type.shape)));
  Members members{*this, unit, group, {}, {}, {}, {}};
  for (const ir::Node* node : unit.nodes) {
    const ir::Value* result = node->outputs[0];
    for (const ir::Value* v : node->inputs) ++members.used[v];
    if (is_alias(*node)) {
      members.base[result] = members.resolve(aliased(*node));
      continue;
    }
    const ElementwiseForm& form = this->form(*node);
    if (form.kind == ElementwiseForm::Kind::kConversion) {
      members.convert(*node, form.converter);
    } else {
      members.apply(*node, form);
    }
  }
  for (const ir::Node* node : unit.reductions) ++members.used[node->inputs[0]];
  std::unordered_set<const ir::Value*> wanted;
  for (const ir::Node* node : unit.nodes) {
    const ir::Value* result = node->outputs[0];
    const size_t* uses = uses_.find(result);
    if (!uses || *uses == members.used[result]) continue;
    const ir::Value* base = members.resolve(result);
    if (wanted.insert(base).second) {
      group.builder.output(members.stored(members.made.at(base), base->type.element));
      group.outputs.push_back(base);
    }
    if (base != result) group.aliases.emplace_back(result, base);
  }
  add_reductions(unit, members);
  return group;
}

}  // namespace treadle::plan
