// Operators that repeat elements.

#include <algorithm>

#include "op/axis_rules.h"
#include "op/dynamic_kernel.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/rank.h"
#include "op/size_rules.h"
#include "op/sizes.h"
#include "ops/tensor/copy.h"

namespace treadle {
namespace {

// --- Tile

// Version 1 repeats one axis, both given as floats.
Result<Shape> repeats_of_tile_1(const Tensor* tiles, const Tensor* axis, int64_t rank) {
  Shape repeats(static_cast<size_t>(rank), Dim(1));
  if (!tiles || !axis) return unknown_shape(static_cast<size_t>(rank));
  TREADLE_ASSIGN(const int64_t a, normalize_axis(axis->int64_at(0), rank));
  repeats[static_cast<size_t>(a)] = tiles->int64_at(0);
  return repeats;
}

Status infer_tile(InferContext& c) {
  const Shape* shape = c.shape(0);
  if (!shape) return c.set_output(0, c.element(0)), Status();
  std::optional<Shape> repeats;
  if (c.version() < 6) {
    TREADLE_ASSIGN(repeats, repeats_of_tile_1(c.value(1), c.value(2), static_cast<int64_t>(shape->size())));
  } else {
    repeats = c.dims_value(1);
    if (const Dim count = length_of(c, 1); differ(count, Dim(static_cast<int64_t>(shape->size())))) {
      return error(Code::kInvalidArgument, "repeats has {} elements, expected one for each axis of the input: {}",
                   count.value(), shape->size());
    }
  }
  if (!repeats) return c.set_output(0, c.element(0), unknown_shape(shape->size())), Status();
  if (repeats->size() != shape->size()) {
    return error(Code::kInvalidArgument, "repeats has {} elements, expected one for each axis of the input: {}",
                 repeats->size(), shape->size());
  }
  Shape out;
  for (size_t i = 0; i < shape->size(); ++i) {
    const Dim& repeat = (*repeats)[i];
    if (repeat.is_known() && repeat.value() < 0) {
      return error(Code::kInvalidArgument, "repeats[{}] is {}, expected at least 0", i, repeat.value());
    }
    out.push_back((*shape)[i] * repeat);
    if (out.back().is_unknown() && (*shape)[i].is_known() && repeat.is_known()) {
      return error(Code::kLimit, "{} repeats of {} elements overflow", repeat.value(), (*shape)[i].value());
    }
  }
  const auto values = c.wants_symbols(0) && out.size() == 1 ? c.dims_value(0) : std::nullopt;
  if (values && !values->empty() && out[0].is_known() && out[0].value() <= 64) {
    Shape all;
    for (size_t i = 0; i < static_cast<size_t>(out[0].value()); ++i) all.push_back((*values)[i % values->size()]);
    c.set_output_symbols(0, std::move(all));
  }
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

// Each axis becomes two, the repeats (on which the input stands still) and the axis itself.
Status prepare_tile(PrepareContext& c) {
  const Operand &in = c.inputs[0], &out = c.outputs[0];
  Dims dims, in_strides, out_strides;
  for (size_t i = 0; i < in.dims.size(); ++i) {
    const int64_t repeats = in.dims[i] ? out.dims[i] / in.dims[i] : 0;
    if (repeats != 1) {
      dims.push_back(repeats);
      in_strides.push_back(0);
      out_strides.push_back(out.strides[i] * in.dims[i]);
    }
    dims.push_back(in.dims[i]);
    in_strides.push_back(in.strides[i]);
    out_strides.push_back(out.strides[i]);
  }
  return tensor_ops::set_copy_kernel(c, dims, in_strides, out_strides);
}

// --- Expand

Status infer_expand(InferContext& c) {
  const Shape* shape = c.shape(0);
  const auto target = c.dims_value(1);
  if (!shape || !target) {
    const Dim rank = dimensions_listed(c, 1);
    if (!shape || !rank.is_known()) return c.set_output(0, c.element(0)), Status();
    Shape out = unknown_shape(std::max(shape->size(), static_cast<size_t>(rank.value())));
    // Only sizes of 1 grow, and only where the target has a size of its own.
    const size_t skip = out.size() - shape->size(), untouched = out.size() - static_cast<size_t>(rank.value());
    for (size_t i = 0; i < shape->size(); ++i) {
      const Dim& d = (*shape)[i];
      if (skip + i < untouched || (d.is_known() && d.value() != 1)) out[skip + i] = d;
    }
    c.set_output(0, c.element(0), std::move(out));
    return {};
  }
  for (const Dim& d : *target) {
    if (d.is_known() && d.value() < 0)
      return error(Code::kInvalidArgument, "shape holds {}, expected sizes of at least 0", d.value());
  }
  auto both = broadcast(*shape, *target);
  if (!both.ok()) {
    return error(Code::kInvalidArgument, "the shape of input and the contents of shape: {}",
                 std::move(both).status().message());
  }
  Shape out = std::move(both).value();
  if (c.wants_symbols(0) && out.size() <= 1) {
    const int64_t count = out.empty() ? 1 : out[0].value_or(-1);
    const auto values = c.dims_value(0);
    if (values && count >= 0 && count <= 64) {
      c.set_output_symbols(0, values->size() == 1 ? Shape(static_cast<size_t>(count), (*values)[0]) : *values);
    }
  }
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

Status prepare_expand(PrepareContext& c) {
  const Operand &in = c.inputs[0], &out = c.outputs[0];
  const size_t skip = out.dims.size() - in.dims.size();
  Dims strides(out.dims.size(), 0);
  for (size_t i = 0; i < in.dims.size(); ++i) {
    if (in.dims[i] != 1) strides[skip + i] = in.strides[i];
  }
  return tensor_ops::set_copy_kernel(c, out.dims, strides, out.strides);
}

struct DynamicExpand {
  size_t width = 0;
};

uint32_t run_dynamic_expand(const DynamicExpand& s, DynamicCall& call) {
  const DynamicOperand &in = call.inputs[0], &shape = call.inputs[1];
  if (shape.rank() != 1) return kNotDynamic;
  const auto* target = static_cast<const int64_t*>(shape.data);
  const size_t rank = std::max(in.dims->size(), static_cast<size_t>(shape.count));
  const size_t skip = rank - in.dims->size(), untouched = rank - static_cast<size_t>(shape.count);
  const Dims own = contiguous_strides(*in.dims);
  NumberSizes sizes;
  Dims dims(rank, 1), strides(rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t from = d < skip ? 1 : in.size(d - skip), to = d < untouched ? 1 : target[d - untouched];
    dims[d] = from;
    if (to < 0 || !size_rules::broadcast(sizes, dims[d], to)) return kNotDynamic;
    if (from != 1) strides[d] = own[d - skip];
  }
  void* to = call.make(0, dims);
  if (!to) return kNotDynamic;
  copy_strided(s.width, dims, in.data, strides, to, contiguous_strides(dims));
  return 0;
}

DynamicKernel dynamic_expand(const DynamicContext& c) {
  return dynamic_kernel<DynamicExpand, run_dynamic_expand>(c, DynamicExpand{byte_width(c.element(0))});
}

Status spread_axes(AxisContext& c) {
  TREADLE_TRY(axes::only_first(c));
  const int64_t axis = c.in(0) + c.out_rank() - c.rank(0);
  if (!same(c.out_shape()[static_cast<size_t>(axis)], c.size(0, c.in(0)))) return looks_along("it spreads the axis");
  return c.give(0, axis);
}

Status widen_expand(WidenContext& c) {
  c.align(0, c.out_rank());
  return axes::prefix_list<1>(c);
}

Status tiled_axes(AxisContext& c) {
  return axes::of_kept_size(c, "it repeats the axis");
}

Status widen_tile(WidenContext& c) {
  if (c.version() < 6) return looks_along("it is of an old version");
  return axes::prefix_list<1>(c);
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Tile, "") {
  op.since(1)
      .in("input", "T")
      .in("tiles", "T")
      .in("axis", "T")
      .out("output", "T")
      .type("T", types::kFloats)
      .type("T1", types::kInt64s);
  op.since(6).no_inputs().in("input", "T").in("repeats", "T1").type("T", types::kAllTensors);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.infer(infer_tile)
      .prepare(prepare_tile)
      .compute(compute_by_position)
      .moves_elements()
      .shape_inputs({1, 2})
      .strided_inputs({0})
      .axes(tiled_axes, widen_tile);
}

TREADLE_OP(Expand, "") {
  op.since(8).in("input", "T").in("shape", "tensor(int64)").out("output", "T").type("T", types::kAllTensors);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.infer(infer_expand)
      .prepare(prepare_expand)
      .compute(compute_by_position)
      .moves_elements()
      .shape_inputs({1})
      .strided_inputs({0})
      .dynamic(dynamic_expand)
      .axes(spread_axes, widen_expand)
      .over_time(TimeRule::kExpand);
}
