#include "op/axis_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "op/op_def.h"
#include "type/make_tensor.h"

namespace treadle::axes {

Status only_first(const AxisContext& c) {
  if (c.only_runs_along(0)) return {};
  return looks_along("another input than its first runs along the axis");
}

Status broadcast(AxisContext& c) {
  if (c.attributes().has("broadcast") || !c.node().outputs[0]) return looks_along("it is of an old version");
  int64_t axis = kNoAxis;
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (!c.runs_along(i)) continue;
    const int64_t here = c.in(i) + c.out_rank() - c.rank(i);
    if (axis != kNoAxis && here != axis) return looks_along("its operands run along unlike axes");
    axis = here;
  }
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (c.runs_along(i) || !c.present(i)) continue;
    const int64_t at = axis - (c.out_rank() - c.rank(i));
    if (at >= 0 && !c.size(i, at).is_known(1)) {
      return looks_along(fmt::format("'{}' has a fixed size along it", std::string_view(c.node().inputs[i]->name)));
    }
  }
  return c.give_all(axis);
}

Status element_by_element(AxisContext& c) {
  TREADLE_TRY(only_first(c));
  return c.give_all(c.in(0));
}

Status entries(AxisContext& c) {
  TREADLE_TRY(only_first(c));
  if (c.in(0) != 0) return looks_along(fmt::format("it runs over axis {}", c.in(0)));
  return c.give_all(0);
}

Status rows_of_table(AxisContext& c) {
  if (c.present(0) && c.rank(0) < 2) return looks_along("its input is one entry");
  return entries(c);
}

Status entries_of_inputs(AxisContext& c, uint32_t inputs) {
  for (size_t i = 0; i < c.inputs(); ++i) {
    const bool has_entries = (inputs >> i & 1) != 0;
    if (c.in(i) > 0) return looks_along(fmt::format("it runs over axis {}", c.in(i)));
    if (c.present(i) && has_entries != c.runs_along(i)) return looks_along("not all of its inputs run along it");
  }
  return c.give_all(0);
}

Status reshaped(AxisContext& c) {
  TREADLE_TRY(only_first(c));
  const int64_t axis = same_axis(c.type(0).shape, c.in(0), c.out_shape());
  if (axis == kNoAxis) {
    return looks_along(fmt::format("it makes {} of {}", to_string(c.out_shape()), to_string(c.type(0).shape)));
  }
  return c.give(0, axis);
}

Status along_axis_attribute(AxisContext& c) {
  TREADLE_TRY(only_first(c));
  if (c.axis(c.rank(0), -1) == c.in(0)) return looks_along(fmt::format("it runs over axis {}", c.in(0)));
  return c.give_all(c.in(0));
}

Status from_axis_attribute(AxisContext& c) {
  TREADLE_TRY(only_first(c));
  if (c.in(0) >= c.axis(c.rank(0), -1)) return looks_along(fmt::format("it normalises over axis {}", c.in(0)));
  return c.give_all(c.in(0));
}

Status along_axis_input(AxisContext& c) {
  TREADLE_TRY(only_first(c));
  const auto axis = constant_ints(c.node(), 1);
  if (!axis || axis->size() != 1) return looks_along("its axis is not known beforehand");
  if (((*axis)[0] < 0 ? (*axis)[0] + c.rank(0) : (*axis)[0]) == c.in(0)) {
    return looks_along(fmt::format("it runs over axis {}", c.in(0)));
  }
  return c.give(0, c.in(0));
}

Status reduced(AxisContext& c) {
  TREADLE_TRY(only_first(c));
  const auto axes = constant_axes(c.node(), 1);
  if (!axes) return looks_along("its axes are not known beforehand");
  if (axes->empty()) {
    if (c.attributes().get_int("noop_with_empty_axes") != 0) return c.give(0, c.in(0));
    return looks_along("it reduces all axes");
  }
  int64_t axis = c.in(0);
  for (int64_t a : *axes) {
    if (a < 0) a += c.rank(0);
    if (a == c.in(0)) return looks_along(fmt::format("it reduces axis {}", a));
    if (a < c.in(0) && c.attributes().get_int("keepdims", 1) == 0) --axis;
  }
  return c.give(0, axis);
}

Matrices matrices(const AxisContext& c, size_t input) {
  return {c.type(input).shape, c.in(input)};
}

// Axes count from the front of the operand with more axes. A vector has no row axis, or no column axis, to give.
Matrices permuted(const AxisContext& c, size_t input, const char* permutation) {
  const auto perm = c.attributes().get_ints(permutation);
  if (perm.empty()) return matrices(c, input);
  Matrices m{{}, kNoAxis};
  for (size_t at = 0; at < perm.size(); ++at) {
    m.shape.push_back(c.size(input, perm[at]));
    if (perm[at] == c.in(input)) m.axis = static_cast<int64_t>(at);
  }
  return m;
}

Result<int64_t> matrix_product(const Matrices& a, const Matrices& b) {
  const int64_t rank = std::max(a.rank(), b.rank());
  if (a.runs_along() && a.axis == a.rank() - 1) return looks_along("its product sums along it");
  if (b.runs_along() && (b.rank() == 1 || b.axis == b.rank() - 2)) return looks_along("its product sums along it");
  int64_t axis = kNoAxis;
  for (const Matrices* m : {&a, &b}) {
    if (!m->runs_along()) continue;
    const int64_t here = m->axis + rank - m->rank();
    if (axis != kNoAxis && here != axis) return looks_along("its product pairs all positions with all");
    axis = here;
  }
  for (const Matrices* m : {&a, &b}) {
    const int64_t at = axis - (rank - m->rank());
    if (m->runs_along() || axis >= rank - 2 || at < 0) continue;
    if (!m->shape[static_cast<size_t>(at)].is_known(1)) {
      return looks_along("an operand of its product has a fixed size along it");
    }
  }
  return a.rank() == 1 && axis == rank - 1 ? axis - 1 : axis;
}

Status matrix_product(AxisContext& c, size_t a, size_t b) {
  TREADLE_ASSIGN(const int64_t axis, matrix_product(matrices(c, a), matrices(c, b)));
  return c.give(0, axis);
}

Status elements_along_axis(AxisContext& c) {
  for (size_t i = 1; i < c.inputs(); ++i) {
    if (c.in(i) != c.in(0)) return looks_along("not all of its inputs run along it");
  }
  if (c.axis(c.rank(0), 0) == c.in(0)) return looks_along("it picks positions of it");
  return c.give(0, c.in(0));
}

Status of_kept_size(AxisContext& c, const char* otherwise) {
  TREADLE_TRY(only_first(c));
  if (!same(c.out_shape()[static_cast<size_t>(c.in(0))], c.size(0, c.in(0)))) return looks_along(otherwise);
  return c.give_all(c.in(0));
}

Status agree(const AxisMap& axes, const ir::Value* a, const ir::Value* b) {
  const auto ia = axes.find(a), ib = axes.find(b);
  const int64_t axis_a = ia == axes.end() ? kNoAxis : ia->second, axis_b = ib == axes.end() ? kNoAxis : ib->second;
  if (axis_a == axis_b) return {};
  return looks_along("a value of its body changes the axis that it runs along");
}

void hand_over(AxisMap& axes, const ir::Value* from, const ir::Value* to) {
  const auto it = from ? axes.find(from) : axes.end();
  if (!to || it == axes.end()) return;
  const int64_t axis = it->second;
  axes[to] = axis;
}

void hand_over_stacked(AxisMap& axes, const ir::Value* row, const ir::Value* whole, int64_t at) {
  const auto it = row ? axes.find(row) : axes.end();
  if (!whole || it == axes.end()) return;
  const int64_t axis = it->second + (it->second >= at ? 1 : 0);
  axes[whole] = axis;
}

// ---------------------------------------------------------------------------------------------------------------------

Status unchanged(WidenContext&) {
  return {};
}

Status aligned(WidenContext& c) {
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (c.present(i)) c.align(i, c.out_rank());
  }
  return {};
}

Status shift_axis(WidenContext& c) {
  const int64_t axis = c.axis_attribute();
  c.set(ir::Attribute::of("axis", axis < 0 ? axis : axis + 1));
  return {};
}

Status shift_axis_of_all(WidenContext& c) {
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (!c.varies(i)) c.repeat(i);
  }
  return shift_axis(c);
}

Tensor ints_like(const ir::Node& node, size_t like, std::span<const int64_t> values) {
  Tensor wide = Tensor::of_int64(values);
  if (node.inputs[like]->type.element != ElementType::kInt32) return wide;
  Tensor narrow = make_tensor(ElementType::kInt32, wide.dims());
  std::copy_n(wide.data<int64_t>(), wide.element_count(), narrow.mutable_data<int32_t>());
  return narrow;
}

Status shift_axis_input(WidenContext& c) {
  if (!c.present(1)) return shift_axis(c);
  const auto axis = constant_ints(c.node(), 1);
  if (!axis || axis->size() != 1) return looks_along("its axis is not known beforehand");
  Tensor shifted = make_tensor(c.node().inputs[1]->type.element, c.node().inputs[1]->constant.dims());
  const int64_t value = behind_new_axis(*axis)[0];
  if (shifted.type() == ElementType::kInt32) {
    *shifted.mutable_data<int32_t>() = static_cast<int32_t>(value);
  } else {
    *shifted.mutable_data<int64_t>() = value;
  }
  c.set_input(1, std::move(shifted));
  return {};
}

// Reducing a scalar reduces nothing, but an empty list of axes would mean all axes, including the new one.
Status shift_axes(WidenContext& c) {
  auto axes = constant_axes(c.node(), 1);
  if (!axes || c.rank(0) == 0) return looks_along("its axes are not known beforehand");
  if (axes->empty()) {
    if (c.attributes().get_int("noop_with_empty_axes") != 0) return {};
    for (int64_t i = 0; i < c.rank(0); ++i) axes->push_back(i);
  }
  axes = behind_new_axis(*axes);
  if (c.node().version->attribute("axes")) {
    c.set(ir::Attribute::of("axes", std::move(*axes)));
  } else {
    c.set_input(1, Tensor::of_int64(*axes));
  }
  return {};
}

Status prefix_list(WidenContext& c, int64_t first) {
  const auto list = constant_ints(c.node(), 1);
  if (!list) return looks_along("its sizes are not known beforehand");
  std::vector<int64_t> longer{first};
  longer.insert(longer.end(), list->begin(), list->end());
  c.set_input(1, ints_like(c.node(), 1, longer));
  return {};
}

}  // namespace treadle::axes
