#include <algorithm>

#include "op/axis_rules.h"
#include "op/dynamic_kernel.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/size_rules.h"
#include "op/sizes.h"
#include "op/small_contents.h"
#include "ops/tensor/copy.h"

namespace treadle {
namespace {

using size_rules::slice;

// starts, ends, axes and steps of a node; nullopt where nothing is known of one.
struct Bounds {
  std::optional<Shape> starts, ends;
  IntList axes, steps;
};

template <class Context>
IntList axes_of(const Context& c) {
  return int_list(c, "axes", 3);
}

Status check_lengths(size_t starts, size_t ends, const IntList& axes, const IntList& steps) {
  if (starts != ends || (axes.known() && axes.values.size() != starts) ||
      (steps.known() && steps.values.size() != starts)) {
    return error(Code::kInvalidArgument, "starts, ends, axes and steps have {}, {}, {} and {} elements, expected equal",
                 starts, ends, axes.known() ? axes.values.size() : starts,
                 steps.known() ? steps.values.size() : starts);
  }
  for (int64_t step : steps.values) {
    if (step == 0) return error(Code::kInvalidArgument, "steps holds 0, expected other numbers");
  }
  return {};
}

Bounds bounds_of(const InferContext& c) {
  Bounds b;
  if (c.version() < 10) {
    const auto starts = c.attributes().get_ints("starts"), ends = c.attributes().get_ints("ends");
    b.starts = Shape(starts.begin(), starts.end());
    b.ends = Shape(ends.begin(), ends.end());
  } else {
    b.starts = c.dims_value(1);
    b.ends = c.dims_value(2);
  }
  b.axes = axes_of(c);
  b.steps = int_list(c, nullptr, 4);
  return b;
}

Result<Ints> axes_or_all(const IntList& axes, size_t count, int64_t rank) {
  if (axes.known()) return normalize_axes(axes.values, rank);
  if (static_cast<int64_t>(count) > rank) {
    return error(Code::kInvalidArgument, "starts has {} elements, expected at most one for each axis: {}", count, rank);
  }
  Ints all;
  for (size_t i = 0; i < count; ++i) all.push_back(static_cast<int64_t>(i));
  return all;
}

void slice_symbols(InferContext& c, const Bounds& b) {
  const auto values = small_contents(c, 0);
  if (!values || values->size() > 64 || b.starts->size() != 1) return;
  if (!(*b.starts)[0].is_known() || !(*b.ends)[0].is_known()) return;
  const int64_t step = b.steps.known() ? b.steps.values[0] : 1;
  NumberSizes sizes;
  const auto part =
      slice(sizes, static_cast<int64_t>(values->size()), (*b.starts)[0].value(), (*b.ends)[0].value(), step);
  Shape picked;
  for (int64_t i = 0; i < part.count; ++i) picked.push_back((*values)[static_cast<size_t>(part.start + i * step)]);
  c.set_output_symbols(0, std::move(picked));
}

// Of lists of which not even one number has to be known.
Status check_list_lengths(const InferContext& c) {
  static constexpr const char* kNames[] = {"", "starts", "ends", "axes", "steps"};
  size_t first = 0;
  for (size_t i = 1; c.version() >= 10 && i < std::size(kNames); ++i) {
    if (!c.has_input(i) || !length_of(c, i).is_known()) continue;
    if (first == 0) first = i;
    if (!differ(length_of(c, first), length_of(c, i))) continue;
    return error(Code::kInvalidArgument, "{} and {} have {} and {} elements, expected equal numbers", kNames[first],
                 kNames[i], length_of(c, first).value(), length_of(c, i).value());
  }
  return {};
}

Status infer_slice(InferContext& c) {
  TREADLE_TRY(check_list_lengths(c));
  const Shape* shape = c.shape(0);
  if (!shape) return c.set_output(0, c.element(0)), Status();
  const auto rank = static_cast<int64_t>(shape->size());
  const Bounds b = bounds_of(c);
  if (b.axes.state == IntList::State::kUnknown || (!b.starts && !b.ends && !b.axes.known())) {
    c.set_output(0, c.element(0), unknown_shape(shape->size()));
    return {};
  }
  const size_t count = b.axes.known() ? b.axes.values.size() : b.starts ? b.starts->size() : b.ends->size();
  TREADLE_TRY(check_lengths(b.starts ? b.starts->size() : count, b.ends ? b.ends->size() : count, b.axes, b.steps));
  TREADLE_ASSIGN(const Ints axes, axes_or_all(b.axes, count, rank));
  DimSizes sizes;
  Shape out = *shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim& size = out[static_cast<size_t>(axes[i])];
    if (!b.starts || !b.ends || b.steps.state == IntList::State::kUnknown) {
      size = Dim::unknown();
      continue;
    }
    size = slice(sizes, size, (*b.starts)[i], (*b.ends)[i], b.steps.known() ? b.steps.values[i] : 1).count;
  }
  if (c.wants_symbols(0) && rank == 1 && b.starts && b.ends && b.steps.state != IntList::State::kUnknown) {
    slice_symbols(c, b);
  }
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

Status prepare_slice(PrepareContext& c) {
  const Operand& in = c.inputs[0];
  const IntList starts = int_list(c, "starts", 1), ends = int_list(c, "ends", 2);
  const IntList steps = int_list(c, nullptr, 4);
  TREADLE_ASSIGN(const Ints axes, axes_or_all(axes_of(c), starts.values.size(), in.rank()));
  NumberSizes sizes;
  Dims strides = in.strides;
  int64_t offset = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    const int64_t step = steps.known() ? steps.values[i] : 1;
    const auto part = slice(sizes, in.dims[axis], starts.values[i], ends.values[i], step);
    offset += part.start * in.strides[axis];
    strides[axis] = part.count > 1 ? in.strides[axis] * step : in.strides[axis];
  }
  return tensor_ops::set_copy_kernel(c, c.outputs[0].dims, strides, c.outputs[0].strides, offset);
}

// Of version 10 and later: bounds are inputs.
struct DynamicSlice {
  size_t width = 0;
  bool wide = false;  // the bounds are int64
};

uint32_t run_dynamic_slice(const DynamicSlice& s, DynamicCall& call) {
  const DynamicOperand &in = call.inputs[0], &starts = call.inputs[1], &ends = call.inputs[2];
  const int64_t rank = in.rank(), count = starts.count;
  if (count > rank) return kNotDynamic;
  for (const DynamicOperand& list : call.inputs.subspan(1)) {
    if (list.present() && (list.rank() != 1 || list.count != count)) return kNotDynamic;
  }
  Dims dims = *in.dims, strides = dims.size() == 1 ? Dims{1} : contiguous_strides(dims);
  NumberSizes sizes;
  int64_t offset = 0;
  uint64_t named = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t axis = call.has(3) ? index_at(call.inputs[3].data, s.wide, i) : i;
    if (axis < 0) axis += rank;
    const int64_t step = call.has(4) ? index_at(call.inputs[4].data, s.wide, i) : 1;
    if (axis < 0 || axis >= rank || named >> axis & 1 || step == 0) return kNotDynamic;
    named |= uint64_t{1} << axis;
    const auto d = static_cast<size_t>(axis);
    const auto part = slice(sizes, dims[d], index_at(starts.data, s.wide, i), index_at(ends.data, s.wide, i), step);
    offset += part.start * strides[d];
    if (part.count > 1) strides[d] *= step;
    dims[d] = part.count;
  }
  void* to = call.make(0, dims);
  if (!to) return kNotDynamic;
  const auto* from = static_cast<const std::byte*>(in.data) + offset * static_cast<int64_t>(s.width);
  copy_strided(s.width, dims, from, strides, to, dims.size() == 1 ? Dims{1} : contiguous_strides(dims));
  return 0;
}

DynamicKernel dynamic_slice(const DynamicContext& c) {
  if (c.node.version->since < 10) return {};
  const DynamicSlice slice{byte_width(c.element(0)), c.element(1) == ElementType::kInt64};
  return dynamic_kernel<DynamicSlice, run_dynamic_slice>(c, slice);
}

// A part of unit steps that is as long as the axis is all of it.
Status sliced_axes(AxisContext& c) {
  TREADLE_TRY(axes::only_first(c));
  const auto given = constant_axes(c.node(), 3);
  if (!given) return looks_along("its axes are not known beforehand");
  const auto is_axis = [&](int64_t a) { return (a < 0 ? a + c.rank(0) : a) == c.in(0); };
  const auto it = std::find_if(given->begin(), given->end(), is_axis);
  if (!given->empty() && it == given->end()) return c.give(0, c.in(0));
  const auto at = static_cast<size_t>(given->empty() ? c.in(0) : it - given->begin());
  const auto steps = c.present(4) ? constant_ints(c.node(), 4) : std::vector<int64_t>(at + 1, 1);
  const bool unit = steps && at < steps->size() && (*steps)[at] == 1;
  if (!unit || !same(c.out_shape()[static_cast<size_t>(c.in(0))], c.size(0, c.in(0)))) {
    return looks_along("it cuts a part out of it");
  }
  return c.give(0, c.in(0));
}

Status widen_slice(WidenContext& c) {
  const auto starts = c.version() < 10 ? constant_axes(c.node(), 1, "starts") : constant_ints(c.node(), 1);
  auto along = constant_axes(c.node(), 3);
  if (!starts || !along) return looks_along("its axes are not known beforehand");
  for (size_t i = 0; along->size() < starts->size(); ++i) along->push_back(static_cast<int64_t>(i));
  along = behind_new_axis(*along);
  if (c.version() < 10) {
    c.set(ir::Attribute::of("axes", std::move(*along)));
  } else {
    c.set_input(3, axes::ints_like(c.node(), 1, *along));
  }
  return {};
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Slice, "") {
  op.since(1)
      .in("data", "T")
      .out("output", "T")
      .optional("axes", ir::AttributeKind::kInts)
      .required("ends", ir::AttributeKind::kInts)
      .required("starts", ir::AttributeKind::kInts)
      .type("T", types::kAllTensors);
  op.since(10)
      .in("starts", "Tind")
      .in("ends", "Tind")
      .in("axes", "Tind", Arity::kOptional)
      .in("steps", "Tind", Arity::kOptional)
      .drop_attr("axes")
      .drop_attr("ends")
      .drop_attr("starts")
      .type("Tind", types::kIndices);
  op.since(11);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.infer(infer_slice)
      .prepare(prepare_slice)
      .compute(compute_by_position)
      .moves_elements()
      .shape_inputs({1, 2, 3, 4})
      .strided_inputs({0})
      .dynamic(dynamic_slice)
      .sizes(SizeRule::kSlice)
      .axes(sliced_axes, widen_slice)
      .over_time(TimeRule::kSlice);
}
