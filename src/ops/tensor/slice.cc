#include <algorithm>
#include <limits>

#include "op/axis_rules.h"
#include "op/dynamic_kernel.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/small_contents.h"
#include "ops/tensor/copy.h"

namespace treadle {
namespace {

// Ends are given beyond any size to mean "to the end", often the largest integer of some type.
constexpr int64_t kBeyond = std::numeric_limits<int32_t>::max();

// One axis: elements start, start + step, ... `count` of them.
struct Range {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

Range known_range(int64_t size, int64_t start, int64_t end, int64_t step) {
  if (size == 0) return {0, 1, 0};
  if (start < 0) start += size;
  if (end < 0) end += size;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, size);
    end = std::clamp<int64_t>(end, 0, size);
    const int64_t span = end - start;
    return {start, step, span <= 0 ? 0 : (span - 1) / step + 1};
  }
  start = std::clamp<int64_t>(start, 0, size - 1);
  end = std::clamp<int64_t>(end, -1, size - 1);
  const int64_t span = start - end;
  // -step overflows for the smallest integer.
  const uint64_t stride = 0 - static_cast<uint64_t>(step);
  return {start, step, span <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(span) - 1) / stride + 1)};
}

bool is_never_negative(const Dim& d) {
  return d.lower_bound().value_or(-1) >= 0;
}

// A bound between 0 and `size`, negative ones counted from the end; unknown when its sign is.
Dim bound(const Dim& given, const Dim& size) {
  if (given.is_known(0)) return 0;  // whatever is known of the size: none is negative
  if (given.is_known() && given.value() >= kBeyond) return size;
  if (given.is_known() && given.value() <= -kBeyond) return 0;
  if (given.is_known() && given.value() < 0) {
    const Dim from_end = size + given;
    return is_never_negative(from_end) ? from_end : max(from_end, 0);
  }
  if (!is_never_negative(given)) return {};
  return min(given, size);
}

Dim symbolic_count(const Dim& size, const Dim& start, const Dim& end, int64_t step) {
  if (step < 0) {
    const bool whole = (start.is_known(-1) || (start.is_known() && start.value() >= kBeyond)) && end.is_known() &&
                       end.value() <= -kBeyond;
    return whole && step > -kBeyond ? ceil_div(size, -step) : Dim();
  }
  const bool to_end = end.is_known() && end.value() >= kBeyond;
  if (to_end && start.is_known() && start.value() < 0) {
    return ceil_div(min(size, -std::max(start.value(), -std::numeric_limits<int64_t>::max())), step);
  }
  const Dim first = bound(start, size), last = bound(end, size);
  if (first.is_known(0)) return ceil_div(last, step);
  const Dim span = last - first;
  return ceil_div(is_never_negative(span) ? span : max(span, 0), step);
}

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
  const Range r = known_range(static_cast<int64_t>(values->size()), (*b.starts)[0].value(), (*b.ends)[0].value(),
                              b.steps.known() ? b.steps.values[0] : 1);
  Shape picked;
  for (int64_t i = 0; i < r.count; ++i) picked.push_back((*values)[static_cast<size_t>(r.start + i * r.step)]);
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
  Shape out = *shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim& size = out[static_cast<size_t>(axes[i])];
    if (!b.starts || !b.ends || b.steps.state == IntList::State::kUnknown) {
      size = Dim::unknown();
      continue;
    }
    const Dim &start = (*b.starts)[i], &end = (*b.ends)[i];
    const int64_t step = b.steps.known() ? b.steps.values[i] : 1;
    size = size.is_known() && start.is_known() && end.is_known()
               ? Dim(known_range(size.value(), start.value(), end.value(), step).count)
               : symbolic_count(size, start, end, step);
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
  Dims strides = in.strides;
  int64_t offset = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    const Range r = known_range(in.dims[axis], starts.values[i], ends.values[i], steps.known() ? steps.values[i] : 1);
    offset += r.start * in.strides[axis];
    strides[axis] = r.count > 1 ? in.strides[axis] * r.step : in.strides[axis];
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
  int64_t offset = 0;
  uint64_t named = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t axis = call.has(3) ? index_at(call.inputs[3].data, s.wide, i) : i;
    if (axis < 0) axis += rank;
    const int64_t step = call.has(4) ? index_at(call.inputs[4].data, s.wide, i) : 1;
    if (axis < 0 || axis >= rank || named >> axis & 1 || step == 0) return kNotDynamic;
    named |= uint64_t{1} << axis;
    const auto d = static_cast<size_t>(axis);
    const Range r = known_range(dims[d], index_at(starts.data, s.wide, i), index_at(ends.data, s.wide, i), step);
    offset += r.start * strides[d];
    if (r.count > 1) strides[d] *= r.step;
    dims[d] = r.count;
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
      .axes(sliced_axes, widen_slice)
      .over_time(TimeRule::kSlice);
}
