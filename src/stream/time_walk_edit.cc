// Changes of the graph during a walk: nodes before and behind the current one, states.
#include <algorithm>
#include <climits>

#include "opt/builder.h"
#include "stream/time_walk.h"

namespace treadle::stream {

void TimeWalk::emit() {
  if (node_) top_.nodes.push_back(std::move(node_));
}

ir::Node* TimeWalk::make(std::string_view op, std::initializer_list<ir::Value*> inputs,
                         std::vector<ir::Attribute> attributes) {
  ir::Node* made = opt::Builder(graph_, top_, top_.nodes.size()).node(op, std::string(op) + ":stream");
  for (ir::Attribute& a : attributes) made->attributes.set(std::move(a));
  for (ir::Value* v : inputs) graph_.add_input(made, v);
  return made;
}

ir::Value* TimeWalk::call(std::string_view op, std::initializer_list<ir::Value*> inputs, Type type,
                          std::vector<ir::Attribute> attributes) {
  ir::Node* made = make(op, inputs, std::move(attributes));
  return graph_.add_output(made, std::string(op) + ":stream", std::move(type));
}

ir::Value* TimeWalk::ints(std::vector<int64_t> values) {
  return graph_.new_constant("ints:stream", Tensor::of_int64(values));
}

ir::Value* TimeWalk::int_scalar(int64_t value) {
  return graph_.new_constant("int:stream", Tensor::scalar<int64_t>(ElementType::kInt64, value));
}

ir::Value* TimeWalk::slice(ir::Value* v, int64_t axis, int64_t begin, int64_t end) {
  return call("Slice", {v, ints({begin}), ints({end}), ints({axis})}, v->type);
}

ir::Value* TimeWalk::concat(ir::Value* a, ir::Value* b, int64_t axis) {
  return call("Concat", {a, b}, b->type, {ir::Attribute::of("axis", axis)});
}

ir::Value* TimeWalk::pad_frames(ir::Value* v, int64_t axis, int64_t begin, int64_t end) {
  if (begin == 0 && end == 0) return v;
  return call("Pad", {v, ints({begin, end}), nullptr, ints({axis})}, v->type);
}

ir::Value* TimeWalk::length_of(ir::Value* timed) {
  const int64_t axis = role(timed).axis;
  return call("Shape", {timed}, Type::tensor(ElementType::kInt64, Shape{1}),
              {ir::Attribute::of("start", axis), ir::Attribute::of("end", axis + 1)});
}

ir::Value* TimeWalk::as_scalar(ir::Value* one) {
  return call("Squeeze", {one, ints({0})}, Type::tensor(one->type.element, Shape{}));
}

ir::Value* TimeWalk::with_element(ir::Value* shape, const Shape& whole, size_t at, ir::Value* element) {
  const auto part = [&](size_t begin, size_t end) -> ir::Value* {
    std::vector<int64_t> known;
    for (size_t i = begin; i < end && whole[i].is_known(); ++i) known.push_back(whole[i].value());
    if (known.size() == end - begin) return ints(std::move(known));
    return slice(shape, 0, static_cast<int64_t>(begin), static_cast<int64_t>(end));
  };
  const Type type = Type::tensor(ElementType::kInt64, Shape{Dim(static_cast<int64_t>(whole.size()))});
  if (at > 0) element = call("Concat", {part(0, at), element}, type, {ir::Attribute::of("axis", 0)});
  if (at + 1 == whole.size()) return element;
  return call("Concat", {element, part(at + 1, whole.size())}, type, {ir::Attribute::of("axis", 0)});
}

// ---------------------------------------------------------------------------------------------------------------------

// Sizes that are expressions are left open, because an input cannot have them.
Type TimeWalk::frames_type(const ir::Value* v, int64_t axis, int64_t frames) {
  Type type = v->type;
  for (Dim& d : type.shape) {
    if (!d.is_known() && (d.symbol_name().empty() || d.symbol_name() == kSamplesSymbol)) d = Dim::unknown();
  }
  if (axis >= 0 && static_cast<size_t>(axis) < type.shape.size()) type.shape[static_cast<size_t>(axis)] = frames;
  return type;
}

size_t TimeWalk::add_state(const std::string& name, Type type) {
  std::string unique = name;
  const auto taken = [&](std::string_view candidate) {
    return std::any_of(states_.begin(), states_.end(), [&](const State& s) { return s.name == candidate; });
  };
  for (int i = 2; taken(unique); ++i) unique = name + " " + std::to_string(i);
  State state{unique, nullptr, nullptr};
  if (!first_block()) {
    state.past = graph_.new_value(unique, std::move(type), &top_);
    top_.inputs.push_back(state.past);
  }
  states_.push_back(std::move(state));
  return states_.size() - 1;
}

ir::Value* TimeWalk::with_history(ir::Value* v, int64_t axis, int64_t frames, int64_t pad, const std::string& name) {
  if (frames <= 0) return v;
  const size_t state = add_state(name, frames_type(v, axis, frames));
  if (first_block()) {
    const bool reaches_pad = counts_.at_first(role(v).frames) < frames;
    ir::Value* padded = reaches_pad ? pad_frames(v, axis, pad, 0) : v;
    set_next(state, slice(padded, axis, -frames, INT64_MAX));
    return v;
  }
  ir::Value* whole = concat(past(state), v, axis);
  if (!last_block()) set_next(state, slice(whole, axis, -frames, INT64_MAX));
  return whole;
}

ir::Value* TimeWalk::hold_back(ir::Value* v, int64_t axis, int64_t frames, const std::string& name) {
  if (frames <= 0) return v;
  ir::Value* whole = with_history(v, axis, frames, 0, name);
  return last_block() ? whole : slice(whole, axis, 0, -frames);
}

void TimeWalk::replace_output(ir::Node& node, ir::Value* v) {
  ir::Value* out = node.outputs[0];
  if (v == out) return;
  replaced_[out] = v;
  roles_[v] = role(out);
  if (role(out).timed()) timed_.push_back(v);
}

ir::Value* TimeWalk::current(ir::Value* v) const {
  for (auto it = replaced_.find(v); it != replaced_.end(); it = replaced_.find(v)) v = it->second;
  return v;
}

void TimeWalk::drop() {
  for (ir::Value* v : node_->outputs) {
    if (v) v->producer = nullptr;
  }
  node_.reset();
}

void TimeWalk::set_input(ir::Node& node, size_t i, ir::Value* v) {
  while (node.inputs.size() <= i) graph_.add_input(&node, nullptr);
  node.inputs[i] = v;
}

ir::Value* TimeWalk::need_output(ir::Node& node, size_t i, const Type& type) {
  while (node.outputs.size() < i) graph_.add_absent_output(&node);
  if (node.outputs.size() == i) return graph_.add_output(&node, std::string(node.name) + ":state", type);
  if (!node.outputs[i]) {
    ir::Value* v = graph_.new_value(std::string(node.name) + ":state", type, &top_);
    v->producer = &node;
    v->output_index = static_cast<uint32_t>(i);
    node.outputs[i] = v;
  }
  return node.outputs[i];
}

namespace {

// Types were inferred for the whole signal; inference finds those of the block. Outputs of bodies keep their types: a
// size that the model states is kept, although the block's size differs (`record_output_types` of the session).
void forget_types(ir::Region& region) {
  for (const auto& node : region.nodes) {
    for (ir::Value* v : node->outputs) {
      if (v) v->type = {};
    }
    for (const auto& body : node->regions) {
      for (ir::Value* v : body->inputs) v->type = {};
      forget_types(*body);
    }
  }
}

}  // namespace

void TimeWalk::finish_graph(const std::vector<TimedInput>& timed) {
  std::vector<ir::Name> names;
  for (const ir::Value* v : outputs_) names.push_back(v->name);
  for (ir::Value*& out : top_.outputs) out = current(out);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    ir::Value*& out = top_.outputs[i];
    // An output that is an input or a constant, or occurs twice, gets a name of its own.
    const bool shared = !out->producer || std::count(top_.outputs.begin(), top_.outputs.end(), out) > 1;
    if (shared && out->name != names[i]) out = call("Identity", {out}, out->type);
    out->name = names[i];
  }
  if (!last_block()) {
    for (const State& s : states_) {
      ir::Value* next = call("Identity", {s.next}, s.next->type);
      next->name = s.name;
      top_.outputs.push_back(next);
    }
  }
  const std::vector<Type> output_types = [&] {
    std::vector<Type> types;
    for (const ir::Value* v : top_.outputs) {
      Type type = v->type;
      if (type.is_tensor()) type = Type::tensor(type.element);
      types.push_back(std::move(type));
    }
    return types;
  }();
  forget_types(top_);
  top_.output_types.clear();
  for (size_t i = 0; i < top_.outputs.size(); ++i) {
    if (top_.outputs[i]->producer) top_.outputs[i]->type = output_types[i];
  }
  for (const TimedInput& input : timed) {
    for (ir::Value* v : top_.inputs) {
      if (v->name == input.name) v->type.shape[static_cast<size_t>(input.axis)] = Dim::unknown();
    }
  }
  graph_.input_defaults.resize(top_.inputs.size());
}

}  // namespace treadle::stream
