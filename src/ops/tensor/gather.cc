#include <cstring>

#include "kernels/convert.h"
#include "kernels/move.h"
#include "op/axis_rules.h"
#include "op/effects.h"
#include "op/moves.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/size_rules.h"
#include "op/small_contents.h"
#include "op/text_kernel.h"
#include "ops/costs.h"
#include "ops/tensor/copy.h"
#include "ops/tensor/walk.h"

namespace treadle {
namespace {

using tensor_ops::Bytes;
using tensor_ops::checked_index;
using tensor_ops::with_width;

uint32_t out_of_range(int64_t index, int64_t size) {
  return fail(KernelError::kIndexOutOfRange, index, size);
}

// --- Gather

// The symbols that indices pick out of a list of sizes.
void gather_symbols(InferContext& c, const std::optional<Shape>& indices) {
  if (!indices) return;
  const auto values = small_contents(c, 0);
  if (!values || c.shape(0)->size() != 1) return;
  Shape picked;
  for (const Dim& index : *indices) {
    const int64_t i = index.is_known() ? checked_index(index.value(), static_cast<int64_t>(values->size())) : -1;
    picked.push_back(i < 0 ? Dim::unknown() : (*values)[static_cast<size_t>(i)]);
  }
  c.set_output_symbols(0, std::move(picked));
}

Status infer_gather(InferContext& c) {
  const Shape *data = c.shape(0), *indices = c.shape(1);
  if (!data) return c.set_output(0, c.element(0)), Status();
  if (data->empty()) return error(Code::kInvalidArgument, "expected data of rank 1 or more, found a scalar");
  TREADLE_ASSIGN(const int64_t axis,
                 normalize_axis(c.attributes().get_int("axis", 0), static_cast<int64_t>(data->size())));
  if (!indices) return c.set_output(0, c.element(0)), Status();
  Shape out = size_rules::gather(*data, static_cast<size_t>(axis), *indices);
  if (c.wants_symbols(0) && out.size() <= 1) gather_symbols(c, c.dims_value(1));
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

struct GatherState {
  size_t outer = 1;
  int64_t n = 0;
  size_t bytes = 0;  // of one slice
  size_t count = 0;  // of indices
};

// One slice of the leading axis: what loops do with their trip counter. B: its size where that is worth knowing.
template <class Index, size_t B>
uint32_t run_gather_one(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const GatherState*>(state);
  const int64_t index = *static_cast<const Index*>(slots[operands[1]]);
  const int64_t i = checked_index(index, s.n);
  if (i < 0) return out_of_range(index, s.n);
  const size_t bytes = B ? B : s.bytes;
  std::memcpy(slots[operands[2]], static_cast<const char*>(slots[operands[0]]) + static_cast<size_t>(i) * bytes, bytes);
  return 0;
}

template <class Index>
uint32_t run_gather(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const GatherState*>(state);
  const auto* indices = static_cast<const Index*>(slots[operands[1]]);
  const auto* data = static_cast<const char*>(slots[operands[0]]);
  auto* out = static_cast<char*>(slots[operands[2]]);
  const double row_ns = costs::kIndexNs + kByteNs * static_cast<double>(s.bytes);
  StopPoll stop;
  for (size_t o = 0; o < s.outer; ++o, data += static_cast<size_t>(s.n) * s.bytes, out += s.count * s.bytes) {
    const uint32_t failed =
        kernel_in_pieces(static_cast<int64_t>(s.count), row_ns, stop, [&](int64_t begin, int64_t end) -> uint32_t {
          const auto count = static_cast<size_t>(end - begin);
          char* to = out + static_cast<size_t>(begin) * s.bytes;
          size_t position = 0;
          if (!kernels::gather(data, 1, s.n, s.bytes, indices + begin, count, to, &position)) return 0;
          return out_of_range(indices[begin + static_cast<int64_t>(position)], s.n);
        });
    if (failed) return failed;
  }
  return 0;
}

template <class Index>
KernelFn gather_kernel(const GatherState& s) {
  if (s.outer != 1 || s.count != 1) return run_gather<Index>;
  if (s.bytes == 4) return run_gather_one<Index, 4>;
  if (s.bytes == 8) return run_gather_one<Index, 8>;
  return run_gather_one<Index, 0>;
}

// Element k of constant indices along an axis of size n; -1: outside of it.
int64_t constant_position(const Operand& indices, int64_t k, int64_t n) {
  const bool wide = indices.type == ElementType::kInt64;
  return checked_index(wide ? static_cast<const int64_t*>(indices.constant)[k]
                            : int64_t{static_cast<const int32_t*>(indices.constant)[k]},
                       n);
}

// Where every element of the result comes from, `from(k)`, unless one is outside (-1). Only for constant indices.
template <class Fn>
void say_gathered(PrepareContext& c, Fn&& from) {
  Moves* moves = c.inputs[1].constant ? moves_of(c) : nullptr;
  for (size_t k = 0; moves && k < moves->from[0].size(); ++k) {
    const int64_t element = from(static_cast<int64_t>(k));
    if (element < 0) return withdraw_moves(c);
    moves->from[0][k] = element;
  }
}

void say_gather(PrepareContext& c, const GatherState& s) {
  const auto row = static_cast<int64_t>(s.bytes / byte_width(c.inputs[0].type));
  const auto count = static_cast<int64_t>(s.count);
  if (c.form && !c.form_only && !c.inputs[1].constant) {
    c.form->kind = ElementwiseForm::Kind::kGather;
    c.form->gather = {static_cast<int64_t>(s.outer), s.n, row, count};
    return;
  }
  say_gathered(c, [&](int64_t k) {
    const int64_t i = constant_position(c.inputs[1], k / row % count, s.n);
    return i < 0 ? i : (k / row / count * s.n + i) * row + k % row;
  });
}

Status prepare_gather(PrepareContext& c) {
  const Operand &data = c.inputs[0], &indices = c.inputs[1];
  TREADLE_ASSIGN(const int64_t axis, normalize_axis(c.attributes().get_int("axis", 0), data.rank()));
  auto* s = c.make_state<GatherState>();
  s->bytes = byte_width(data.type);
  for (int64_t i = 0; i < data.rank(); ++i) {
    const int64_t size = data.dims[static_cast<size_t>(i)];
    if (i < axis) s->outer *= static_cast<size_t>(size);
    if (i == axis) s->n = size;
    if (i > axis) s->bytes *= static_cast<size_t>(size);
  }
  s->count = static_cast<size_t>(indices.element_count());
  say_gather(c, *s);
  const bool wide = indices.type == ElementType::kInt64;
  c.set_kernel(wide ? gather_kernel<int64_t>(*s) : gather_kernel<int32_t>(*s), s);
  return {};
}

// --- Gather of any sizes

struct DynamicGather {
  int64_t axis = 0;
  size_t width = 0;
  bool wide = false;
};

// What a Gather of the sizes at hand gives, and where its slices lie.
struct Gathered {
  Dims dims;
  int64_t outer = 1, n = 0, inner = 1;  // of the data: sizes in front of the axis, along it, behind it
};

// None where there is no such axis or an index is out of range, which is for the prepared kernel to say.
std::optional<Gathered> gathered(const DynamicGather& s, const DynamicOperand& data, const DynamicOperand& indices) {
  const auto axis = data.axis(s.axis);
  if (!axis) return std::nullopt;
  Gathered made;
  made.n = data.size(*axis);
  for (int64_t i = 0; i < indices.count; ++i) {
    if (checked_index(index_at(indices.data, s.wide, i), made.n) < 0) return std::nullopt;
  }
  made.dims = size_rules::gather(*data.dims, *axis, *indices.dims);
  for (size_t d = 0; d < *axis; ++d) made.outer *= data.size(d);
  for (size_t d = *axis + 1; d < data.dims->size(); ++d) made.inner *= data.size(d);
  return made;
}

uint32_t run_dynamic_gather(const DynamicGather& s, DynamicCall& call) {
  const DynamicOperand &data = call.inputs[0], &indices = call.inputs[1];
  const auto made = gathered(s, data, indices);
  void* to = made ? call.make(0, made->dims) : nullptr;
  if (!to) return kNotDynamic;
  const auto outer = static_cast<size_t>(made->outer), count = static_cast<size_t>(indices.count);
  const size_t bytes = static_cast<size_t>(made->inner) * s.width;
  if (s.wide) {
    kernels::gather(data.data, outer, made->n, bytes, static_cast<const int64_t*>(indices.data), count, to, nullptr);
  } else {
    kernels::gather(data.data, outer, made->n, bytes, static_cast<const int32_t*>(indices.data), count, to, nullptr);
  }
  return 0;
}

uint32_t run_dynamic_text_gather(const DynamicGather& s, DynamicCall& call) {
  const DynamicOperand &data = call.inputs[0], &indices = call.inputs[1];
  const auto made = gathered(s, data, indices);
  auto* to = made ? static_cast<String*>(call.make(0, made->dims)) : nullptr;
  if (!to) return kNotDynamic;
  const String* from = texts_of(data);
  StopPoll stop;
  for (int64_t o = 0; o < made->outer; ++o, from += made->n * made->inner) {
    for (int64_t k = 0; k < indices.count; ++k) {
      const int64_t index = checked_index(index_at(indices.data, s.wide, k), made->n);
      for (const String& text : std::span(from + index * made->inner, static_cast<size_t>(made->inner))) {
        *to++ = text;
        call.count_bytes(text.size());
        if (stop.after(text_ns(text))) return fail(KernelError::kStopped);
      }
    }
  }
  return 0;
}

template <auto kRun>
DynamicKernel dynamic_gather(const DynamicContext& c) {
  const DynamicGather gather{c.attributes().get_int("axis", 0), byte_width(c.element(0)),
                             c.element(1) == ElementType::kInt64};
  return dynamic_kernel<DynamicGather, kRun>(c, gather);
}

// Of strings, which no kernel moves.
Status compute_gather(ComputeContext& c) {
  const Tensor &data = c.tensor(0), &indices = c.tensor(1);
  if (!is_string(data.type())) return compute_by_position(c);
  TREADLE_ASSIGN(const int64_t axis, normalize_axis(c.attributes().get_int("axis", 0), data.rank()));
  const auto at = static_cast<size_t>(axis);
  const std::span<const int64_t> sizes = data.dims();
  const int64_t outer = element_count_unchecked(sizes.first(at)), n = sizes[at];
  const int64_t inner = element_count_unchecked(sizes.subspan(at + 1));
  Dims dims = size_rules::gather(data.dims(), at, indices.dims());
  TREADLE_ASSIGN(Tensor * z, c.allocate(0, ElementType::kString, std::move(dims)));
  const auto* from = data.data<String>();
  auto* to = z->mutable_data<String>();
  StopPoll stop;
  for (int64_t o = 0; o < outer; ++o, from += n * inner) {
    for (int64_t k = 0; k < indices.element_count(); ++k) {
      const int64_t wanted = indices.int64_at(k), index = checked_index(wanted, n);
      if (index < 0) return kernel_status(out_of_range(wanted, n));
      for (const String& text : std::span(from + index * inner, static_cast<size_t>(inner))) {
        *to++ = text;
        if (stop.after(text_ns(text))) return stopped();
      }
    }
  }
  return {};
}

// --- GatherElements

Status infer_gather_elements(InferContext& c) {
  const Shape *data = c.shape(0), *indices = c.shape(1);
  if (data && indices && data->size() != indices->size()) {
    return error(Code::kInvalidArgument, "data has rank {} and indices {}, expected equal ones", data->size(),
                 indices->size());
  }
  if (!indices) {
    if (data) return c.set_output(0, c.element(0), unknown_shape(data->size())), Status();
    return c.set_output(0, c.element(0)), Status();
  }
  TREADLE_ASSIGN(const int64_t axis,
                 normalize_axis(c.attributes().get_int("axis", 0), static_cast<int64_t>(indices->size())));
  for (size_t i = 0; data && i < data->size(); ++i) {
    if (i == static_cast<size_t>(axis) || !(*data)[i].is_known() || !(*indices)[i].is_known()) continue;
    if ((*indices)[i].value() > (*data)[i].value()) {
      return error(Code::kInvalidArgument, "indices have size {} along axis {}, expected at most that of data, {}",
                   (*indices)[i].value(), i, (*data)[i].value());
    }
  }
  if (c.wants_symbols(0) && indices->size() == 1) gather_symbols(c, c.dims_value(1));
  c.set_output(0, c.element(0), *indices);
  return {};
}

struct GatherElementsState {
  Dims dims;     // of the indices, without the last axis
  Dims strides;  // of the data along them, 0 for the gathered axis
  int64_t row = 0;
  int64_t row_stride = 0;   // of the data along the last axis, 0 when that is gathered
  int64_t axis_stride = 0;  // of the data along the gathered axis
  int64_t n = 0;
};

// Elements [begin, end) of a row; strides are numbers or constants.
template <size_t W, class Index, class RowStride, class AxisStride>
uint32_t gather_row(const Bytes<W>* data, const Index* indices, int64_t n, RowStride row_stride, AxisStride axis_stride,
                    int64_t begin, int64_t end, Bytes<W>* out) {
  for (int64_t j = begin; j < end; ++j) {
    const int64_t i = checked_index(indices[j], n);
    if (i < 0) [[unlikely]]
      return out_of_range(indices[j], n);
    out[j] = data[j * row_stride + i * axis_stride];
  }
  return 0;
}

template <size_t W, class Index>
uint32_t run_gather_elements(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const GatherElementsState*>(state);
  const auto* data = static_cast<const Bytes<W>*>(slots[operands[0]]);
  const auto* indices = static_cast<const Index*>(slots[operands[1]]);
  auto* out = static_cast<Bytes<W>*>(slots[operands[2]]);
  const bool along_last = s.row_stride == 0 && s.axis_stride == 1;
  StopPoll stop;
  return tensor_ops::walk(s.dims, s.strides, [&](int64_t base) -> uint32_t {
    const auto gather = [&](int64_t begin, int64_t end) -> uint32_t {
      constexpr std::integral_constant<int64_t, 0> kNone;
      constexpr std::integral_constant<int64_t, 1> kOne;
      return along_last ? gather_row<W>(data + base, indices, s.n, kNone, kOne, begin, end, out)
                        : gather_row<W>(data + base, indices, s.n, s.row_stride, s.axis_stride, begin, end, out);
    };
    const uint32_t failed = kernel_in_pieces(s.row, costs::kIndexNs, stop, gather);
    indices += s.row;
    out += s.row;
    return failed;
  });
}

void say_gather_elements(PrepareContext& c, const GatherElementsState& s) {
  say_gathered(c, [&](int64_t k) {
    const int64_t i = constant_position(c.inputs[1], k, s.n);
    int64_t element = k % s.row * s.row_stride + i * s.axis_stride, rest = k / s.row;
    for (size_t d = s.dims.size(); d-- > 0; rest /= s.dims[d]) element += rest % s.dims[d] * s.strides[d];
    return i < 0 ? i : element;
  });
}

Status prepare_gather_elements(PrepareContext& c) {
  const Operand &data = c.inputs[0], &indices = c.inputs[1];
  TREADLE_TRY(tensor_ops::check_walk_rank(data.rank()));
  TREADLE_ASSIGN(const int64_t signed_axis, normalize_axis(c.attributes().get_int("axis", 0), data.rank()));
  const auto axis = static_cast<size_t>(signed_axis);
  auto* s = c.make_state<GatherElementsState>();
  s->dims = indices.dims;
  s->strides = data.strides;
  s->strides[axis] = 0;
  s->row = s->dims.back();
  s->row_stride = s->strides.back();
  s->dims.pop_back();
  s->strides.pop_back();
  s->axis_stride = data.strides[axis];
  s->n = data.dims[axis];
  say_gather_elements(c, *s);
  with_width(byte_width(data.type), [&](auto w) {
    const bool wide = indices.type == ElementType::kInt64;
    c.set_kernel(wide ? run_gather_elements<w.value, int64_t> : run_gather_elements<w.value, int32_t>, s);
  });
  return {};
}

// --- GatherND

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
    gather_symbols(c, tensor_ops::known_coordinates(c, 1));
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
  say_gathered(c, [&](int64_t k) {
    int64_t element = k / slice / s.per_batch * batch + k % slice;
    for (int64_t d = 0; d < depth; ++d) {
      const auto axis = static_cast<size_t>(d);
      const int64_t i = constant_position(c.inputs[1], k / slice * depth + d, s.sizes[axis]);
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

Status gathered_axes(AxisContext& c) {
  const int64_t axis = c.axis(c.rank(0), 0);
  if (c.runs_along(0) && c.runs_along(1)) return looks_along("both its data and its indices run along it");
  if (c.runs_along(1)) return c.give(0, axis + c.in(1));
  if (c.in(0) == axis) return looks_along("it picks positions of it");
  return c.give(0, c.in(0) < axis ? c.in(0) : c.in(0) + c.rank(1) - 1);
}

Status widen_gather(WidenContext& c) {
  return c.varies(0) ? axes::shift_axis(c) : axes::unchanged(c);
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

TREADLE_OP(Gather, "") {
  op.since(1)
      .in("data", "T")
      .in("indices", "Tind")
      .out("output", "T")
      .attr("axis", 0)
      .type("T", types::kAllTensors)
      .type("Tind", types::kIndices);
  op.since(11);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.infer(infer_gather)
      .sizes(SizeRule::kGather)
      .prepare(prepare_gather)
      .compute(compute_gather)
      .moves_elements()
      .dynamic(dynamic_gather<run_dynamic_gather>)
      .dynamic_texts(dynamic_gather<run_dynamic_text_gather>)
      .can_fail_unless(picks_by_constants)
      .axes(gathered_axes, widen_gather)
      .over_time(TimeRule::kGather);
}

// Gather from tensors of any type, what the standard's has not: bytes of few bits.
TREADLE_OP(GatherAny, "treadle") {
  op.since(1)
      .in("data", "T")
      .in("indices", "Tind")
      .out("output", "T")
      .attr("axis", 0)
      .type("T", types::kAllTensorsIr14)
      .type("Tind", types::kIndices);
  op.infer(infer_gather)
      .sizes(SizeRule::kGather)
      .prepare(prepare_gather)
      .moves_elements()
      .can_fail_unless(picks_by_constants)
      .axes(gathered_axes);
}

TREADLE_OP(GatherElements, "") {
  op.since(11)
      .in("data", "T")
      .in("indices", "Tind")
      .out("output", "T")
      .attr("axis", 0)
      .type("T", types::kAllTensors)
      .type("Tind", types::kIndices);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.infer(infer_gather_elements)
      .prepare(prepare_gather_elements)
      .compute(compute_by_position)
      .moves_elements()
      .can_fail_unless(picks_by_constants)
      .axes(axes::elements_along_axis, axes::shift_axis_of_all);
}

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
