// Sizes that depend on the signal's length: in a block they depend on the block's length.
#include <algorithm>
#include <numeric>

#include "op/op_def.h"
#include "op/registry.h"
#include "stream/time_walk.h"

namespace treadle::stream {

namespace {

Dim product(const Shape& shape, size_t first, size_t last) {
  Dim result = 1;
  for (size_t i = first; i < last; ++i) result = result * shape[i];
  return result;
}

}  // namespace

// Frames keep their order, so no other size may stand before them. They may be merged or divided: [T, 4, 8] as [4 * T,
// 8] has four frames for one.
Status TimeWalk::reshape(ir::Node& node) {
  const Role x = role(node.inputs[0]);
  if (!x.timed()) return pass_on(node, operands(node));
  if (node.inputs.size() < 2 || !node.inputs[1]) return pass_on(node, operands(node));
  const Shape &in = node.inputs[0]->type.shape, &out = node.outputs[0]->type.shape;
  const auto a = static_cast<size_t>(x.axis);
  size_t b = out.size(), along = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!is_samples(out[i])) continue;
    b = i;
    ++along;
  }
  const std::string shapes = "it makes " + to_string(out) + " of " + to_string(in);
  if (along != 1 || !same(product(in, 0, a), product(out, 0, b))) return refuse(node, shapes);
  const Dim inner = product(in, a + 1, in.size()), outer = product(out, b + 1, out.size());
  int64_t mul = 1, div = 1;
  if (!same(inner, outer)) {
    if (!inner.is_known() || !outer.is_known() || inner.value() <= 0 || outer.value() <= 0) return refuse(node, shapes);
    const int64_t common = std::gcd(inner.value(), outer.value());
    mul = inner.value() / common;
    div = outer.value() / common;
  }
  const int frames = counts_.scaled(x.frames, 0, 0, mul, div);
  const int64_t waiting = counts_.at_first(x.frames) - counts_.at_first(frames) * div / mul;
  set_input(node, 0, hold_back(node.inputs[0], x.axis, waiting, std::string(node.name) + ":frames"));

  const auto given = contents(node.inputs[1]);
  if (!given || given->size() != out.size()) return refuse(node, "its shape is not known beforehand");
  Shape whole = *given;
  for (size_t i = 0; i < out.size(); ++i) {
    if (i == b) continue;
    if (out[i].is_known()) {
      whole[i] = out[i];
    } else if (whole[i].is_known(-1)) {
      if (i >= in.size() || !same(in[i], out[i])) return refuse(node, shapes);
      whole[i] = 0;  // copies the input's size
    }
  }
  whole[b] = -1;
  set_input(node, 1, with_element(node.inputs[1], whole, b, ints({-1})));
  set_frames(node.outputs[0], static_cast<int64_t>(b), frames, x.tail * mul / div, x);
  return {};
}

// Squeeze without axes would also remove the time axis of a block of one frame, so it gets axes.
Status TimeWalk::squeeze(ir::Node& node) {
  const Role x = role(node.inputs[0]);
  const auto axes = constant_axes(node, 1);
  if (x.timed() && axes && axes->empty()) {
    std::vector<int64_t> ones;
    const Shape& in = node.inputs[0]->type.shape;
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i].is_known(1)) ones.push_back(static_cast<int64_t>(i));
    }
    if (node.version->since < 13) {
      node.attributes.set(ir::Attribute::of("axes", std::move(ones)));
    } else {
      set_input(node, 1, ints(std::move(ones)));
    }
  }
  return pass_on(node, operands(node));
}

Status TimeWalk::expand(ir::Node& node) {
  const Role x = role(node.inputs[0]);
  if (!x.timed()) return generate(node, node.inputs[1], 1);
  const Shape &in = node.inputs[0]->type.shape, &out = node.outputs[0]->type.shape;
  const size_t axis = static_cast<size_t>(x.axis) + out.size() - in.size();
  if (!same(out[axis], in[static_cast<size_t>(x.axis)])) return refuse(node, "it spreads the axis");
  const auto given = contents(node.inputs[1]);
  if (!given) return refuse(node, "its shape is not known beforehand");
  if (given->size() + static_cast<size_t>(x.axis) >= in.size()) {
    const size_t at = axis - (out.size() - given->size());
    set_input(node, 1, with_element(node.inputs[1], *given, at, ints({1})));
  }
  set_frames(node.outputs[0], static_cast<int64_t>(axis), x.frames, x.tail, x);
  return {};
}

Status TimeWalk::constant_of_shape(ir::Node& node) {
  return generate(node, node.inputs[0], 0);
}

// Frames that are all equal: as many as another value with the same number has.
Status TimeWalk::generate(ir::Node& node, ir::Value* shape, size_t input) {
  ir::Value* y = node.outputs[0];
  const auto given = contents(shape);
  const Operands all = operands(node);
  if (!given || !y->type.has_shape || all.so_far) return pass_on(node, all);
  const Shape& out = y->type.shape;
  const auto along = std::count_if(out.begin(), out.end(), [&](const Dim& d) { return is_samples(d); });
  if (along == 0) return set_role(y, {}), Status();
  const auto b = static_cast<size_t>(std::find_if(out.begin(), out.end(), [&](const Dim& d) { return is_samples(d); }) -
                                     out.begin());
  ir::Value* like = with_length(out[b]);
  if (along != 1 || !like) return refuse(node, "it makes " + to_string(out));
  const size_t at = b - (out.size() - given->size());
  set_input(node, input, with_element(shape, *given, at, length_of(like)));
  const Role r = role(like);
  set_frames(y, static_cast<int64_t>(b), r.frames, r.tail, {});
  return {};
}

// Continues where the block before ended.
Status TimeWalk::range(ir::Node& node) {
  ir::Value* y = node.outputs[0];
  const Operands all = operands(node);
  if (all.timed || all.so_far || !y->type.has_shape || !is_samples(y->type.shape[0])) return pass_on(node, all);
  ir::Value* like = with_length(y->type.shape[0]);
  const auto start = contents(node.inputs[0]), delta = contents(node.inputs[2]);
  if (!like || !start || !delta || !(*start)[0].is_known() || !(*delta)[0].is_known()) {
    return refuse(node, "it counts to the length of the signal");
  }
  const ElementType element = y->type.element;
  const Type scalar = Type::tensor(element, Shape{});
  const size_t state = add_state(std::string(node.name) + ":position", scalar);
  ir::Value* from = first_block() ? node.inputs[0] : past(state);
  ir::Value* count = as_scalar(length_of(like));
  count = call("Cast", {count}, scalar, {ir::Attribute::of("to", static_cast<int64_t>(element))});
  ir::Value* to = call("Add", {from, call("Mul", {count, node.inputs[2]}, scalar)}, scalar);
  set_input(node, 0, from);
  set_input(node, 1, to);
  if (!last_block()) set_next(state, to);
  const Role r = role(like);
  set_frames(y, 0, r.frames, r.tail, {});
  return {};
}

}  // namespace treadle::stream
