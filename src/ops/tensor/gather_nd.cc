#include <cstring>

#include "base/in_pieces.h"
#include "op/axis_rules.h"
#include "op/effects.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/costs.h"
#include "ops/tensor/gather.h"
#include "ops/tensor/walk.h"

namespace treadle {
namespace {

using tensor_ops::checked_index;
using tensor_ops::out_of_range;

Status infer_gather_nd(InferContext& c) {
  const Shape *data = c.shape(0), *indices = c.shape(1);
  if (!data || !indices) return c.set_output(0, c.element(0)), Status();
  const auto batch = static_cast<size_t>(c.attributes().get_int("batch_dims", 0));
  if (indices->empty() || data->empty() || batch >= indices->size() || batch >= data->size()) {
    return error(Code::kInvalidArgument, "data and indices have ranks {} and {}, expected both above batch_dims {}",
                 data->size(), indices->size(), batch);
  }
  const Dim& depth = indices->back();
  if (!depth.is_known()) return c.set_output(0, c.element(0)), Status();
  if (depth.value() < 1 || static_cast<size_t>(depth.value()) > data->size() - batch) {
    return error(Code::kInvalidArgument, "indices have {} coordinates, expected 1 to {}", depth.value(),
                 data->size() - batch);
  }
  for (size_t i = 0; i < batch; ++i) {
    if ((*data)[i].is_known() && (*indices)[i].is_known() && (*data)[i].value() != (*indices)[i].value()) {
      return error(Code::kInvalidArgument, "batch axis {} has size {} in data and {} in indices, expected equal ones",
                   i, (*data)[i].value(), (*indices)[i].value());
    }
  }
  Shape out(indices->begin(), indices->end() - 1);
  for (size_t i = batch + static_cast<size_t>(depth.value()); i < data->size(); ++i) out.push_back((*data)[i]);
  if (c.wants_symbols(0) && data->size() == 1 && out.size() <= 1)
    tensor_ops::gather_symbols(c, tensor_ops::known_coordinates(c, 1));
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

struct GatherNdState {
  int64_t batches = 1, per_batch = 1;  // index tuples: batches x per_batch
  size_t batch_bytes = 0, slice_bytes = 0;
  Ints sizes, strides;  // of the indexed axes; strides in bytes
};

uint32_t run_gather_nd(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const GatherNdState*>(state);
  const auto* data = static_cast<const char*>(slots[operands[0]]);
  const auto* tuple = static_cast<const int64_t*>(slots[operands[1]]);
  auto* out = static_cast<char*>(slots[operands[2]]);
  const double tuple_ns =
      costs::kIndexNs * static_cast<double>(s.sizes.size()) + kByteNs * static_cast<double>(s.slice_bytes);
  StopPoll stop;
  for (int64_t b = 0; b < s.batches; ++b, data += s.batch_bytes) {
    for (int64_t k = 0; k < s.per_batch; ++k, out += s.slice_bytes) {
      if (stop.after(tuple_ns)) return fail(KernelError::kStopped);
      int64_t offset = 0;
      for (size_t d = 0; d < s.sizes.size(); ++d, ++tuple) {
        const int64_t i = checked_index(*tuple, s.sizes[d]);
        if (i < 0) return out_of_range(*tuple, s.sizes[d]);
        offset += i * s.strides[d];
      }
      std::memcpy(out, data + offset, s.slice_bytes);
    }
  }
  return 0;
}

void say_gather_nd(PrepareContext& c, const GatherNdState& s) {
  const auto width = static_cast<int64_t>(byte_width(c.inputs[0].type));
  const int64_t slice = static_cast<int64_t>(s.slice_bytes) / width,
                batch = static_cast<int64_t>(s.batch_bytes) / width;
  const auto depth = static_cast<int64_t>(s.sizes.size());
  tensor_ops::say_gathered(c, [&](int64_t k) {
    int64_t element = k / slice / s.per_batch * batch + k % slice;
    for (int64_t d = 0; d < depth; ++d) {
      const auto axis = static_cast<size_t>(d);
      const int64_t i = tensor_ops::constant_position(c.inputs[1], k / slice * depth + d, s.sizes[axis]);
      if (i < 0) return i;
      element += i * s.strides[axis] / width;
    }
    return element;
  });
}

Status prepare_gather_nd(PrepareContext& c) {
  const Operand &data = c.inputs[0], &indices = c.inputs[1];
  const auto batch = static_cast<size_t>(c.attributes().get_int("batch_dims", 0));
  const auto depth = static_cast<size_t>(indices.dims.back());
  const auto width = static_cast<int64_t>(byte_width(data.type));
  auto* s = c.make_state<GatherNdState>();
  for (size_t i = 0; i + 1 < indices.dims.size(); ++i) (i < batch ? s->batches : s->per_batch) *= indices.dims[i];
  for (size_t i = batch; i < batch + depth; ++i) {
    s->sizes.push_back(data.dims[i]);
    s->strides.push_back(data.strides[i] * width);
  }
  s->slice_bytes = static_cast<size_t>(element_count_unchecked(data.dims.span().subspan(batch + depth)) * width);
  s->batch_bytes = static_cast<size_t>(element_count_unchecked(data.dims.span().subspan(batch)) * width);
  say_gather_nd(c, *s);
  c.set_kernel(run_gather_nd, s);
  return {};
}

// Axes of both up to batch_dims; those of the indices alone but the last; those of the data behind what they pick from.
Status gathered_nd_axes(AxisContext& c) {
  const int64_t batch = c.attributes().get_int("batch_dims"), index_axis = c.rank(1) - 1;
  if (c.runs_along(0) && c.runs_along(1)) {
    if (c.in(0) == c.in(1) && c.in(0) < batch) return c.give(0, c.in(0));
    return looks_along("both its data and its indices run along it");
  }
  if (c.runs_along(1)) {
    if (c.in(1) == index_axis || c.in(1) < batch) return looks_along("its data does not run along it");
    return c.give(0, c.in(1));
  }
  const Dim& picked = c.size(1, index_axis);
  if (!picked.is_known() || c.in(0) < batch + picked.value()) return looks_along("it picks positions of it");
  return c.give(0, c.in(0) - batch - picked.value() + index_axis);
}

Status widen_gather_nd(WidenContext& c) {
  if (!c.varies(0)) return axes::unchanged(c);
  if (!c.varies(1)) c.repeat(1);
  c.set(ir::Attribute::of("batch_dims", c.attributes().get_int("batch_dims") + 1));
  return {};
}

}  // namespace
}  // namespace treadle

TREADLE_OP(GatherND, "") {
  op.since(11).in("data", "T").in("indices", "tensor(int64)").out("output", "T").type("T", types::kAllTensors);
  op.since(12).attr("batch_dims", 0);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.infer(infer_gather_nd)
      .prepare(prepare_gather_nd)
      .compute(compute_by_position)
      .moves_elements()
      .can_fail()
      .axes(gathered_nd_axes, widen_gather_nd);
}
