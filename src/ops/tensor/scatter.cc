#include <cstring>
#include <vector>

#include "op/axis_rules.h"
#include "op/effects.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "op/refused_element.h"
#include "ops/costs.h"
#include "ops/tensor/combine.h"
#include "ops/tensor/copy.h"
#include "ops/tensor/indexed_elements.h"
#include "ops/tensor/walk.h"

namespace treadle {
namespace {

using tensor_ops::Bytes;
using tensor_ops::checked_index;
using tensor_ops::Combine;
using tensor_ops::CombineRow;
using tensor_ops::with_width;

// Operands of every operator here: data, indices, updates, output.
uint32_t copy_data(size_t bytes, const void* data, void* out) {
  return unless_stopped(out == data || copy_in_pieces(out, data, bytes));
}

Status find_combine(const PrepareContext& c, CombineRow* row) {
  TREADLE_ASSIGN(const Combine how, tensor_ops::combine_from_name(c.attributes().get_string("reduction", "none")));
  return tensor_ops::find_combine_row(how, c.inputs[0].type, row);
}

// Strings take the same way, by position; there is nothing to combine.
Status compute_scatter(ComputeContext& c) {
  if (c.attributes().get_string("reduction", "none") != "none" && is_string(c.tensor(0).type())) {
    return error(Code::kInvalidArgument, "attribute reduction is {}, expected none for strings",
                 c.attributes().get_string("reduction"));
  }
  return compute_by_position(c);
}

// --- ScatterElements, and Scatter before version 11

// What is written into a list of sizes, by known indices.
void scatter_symbols(InferContext& c, const std::optional<Shape>& indices) {
  const bool replaces = c.attributes().get_string("reduction", "none") == "none";
  if (!indices || !replaces || !c.wants_symbols(0) || c.shape(0)->size() != 1) return;
  auto values = c.dims_value(0);
  const auto updates = c.dims_value(2);
  if (!values || !updates || updates->size() != indices->size()) return;
  for (size_t i = 0; i < indices->size(); ++i) {
    const Dim& index = (*indices)[i];
    const auto count = static_cast<int64_t>(values->size());
    const int64_t at = index.is_known() ? checked_index(index.value(), count) : -1;
    if (at < 0) return;
    (*values)[static_cast<size_t>(at)] = (*updates)[i];
  }
  c.set_output_symbols(0, std::move(*values));
}

Status infer_scatter_elements(InferContext& c) {
  const Shape *data = c.shape(0), *indices = c.shape(1), *updates = c.shape(2);
  c.set_output(0, c.input(0));
  if (!data) return {};
  TREADLE_TRY(normalize_axis(c.attributes().get_int("axis", 0), static_cast<int64_t>(data->size())).status());
  if (indices && indices->size() != data->size()) {
    return error(Code::kInvalidArgument, "data has rank {} and indices {}, expected equal ones", data->size(),
                 indices->size());
  }
  if (indices && updates && is_known(*indices) && is_known(*updates) && !same(*indices, *updates)) {
    return error(Code::kInvalidArgument, "indices have shape {} and updates {}, expected equal ones",
                 to_string(*indices), to_string(*updates));
  }
  scatter_symbols(c, c.dims_value(1));
  return {};
}

struct ScatterElementsState : tensor_ops::IndexedElements {
  size_t bytes = 0;
  CombineRow combine = nullptr;
};

template <size_t W, class Index>
uint32_t run_scatter_elements(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const ScatterElementsState*>(state);
  if (const uint32_t failed = copy_data(s.bytes, slots[operands[0]], slots[operands[3]])) return failed;
  const auto* indices = static_cast<const Index*>(slots[operands[1]]);
  const auto* updates = static_cast<const Bytes<W>*>(slots[operands[2]]);
  auto* out = static_cast<Bytes<W>*>(slots[operands[3]]);
  StopPoll stop;
  return tensor_ops::walk(s.dims, s.strides, [&](int64_t base) -> uint32_t {
    const auto scatter = [&](int64_t begin, int64_t end) -> uint32_t {
      for (int64_t j = begin; j < end; ++j) {
        const int64_t i = checked_index(indices[j], s.n);
        if (i < 0) return fail(KernelError::kIndexOutOfRange, indices[j], s.n);
        Bytes<W>* target = out + base + j * s.row_stride + i * s.axis_stride;
        if (s.combine) {
          s.combine(target, updates + j, 1);
        } else {
          *target = updates[j];
        }
      }
      return 0;
    };
    const uint32_t failed = kernel_in_pieces(s.row, costs::kIndexNs, stop, scatter);
    indices += s.row;
    updates += s.row;
    return failed;
  });
}

Status prepare_scatter_elements(PrepareContext& c) {
  const Operand &data = c.inputs[0], &indices = c.inputs[1];
  TREADLE_TRY(tensor_ops::check_walk_rank(data.rank()));
  TREADLE_ASSIGN(const int64_t signed_axis, normalize_axis(c.attributes().get_int("axis", 0), data.rank()));
  const auto axis = static_cast<size_t>(signed_axis);
  for (size_t i = 0; i < data.dims.size(); ++i) {
    if (i != axis && indices.dims[i] > data.dims[i]) {
      return error(Code::kInvalidArgument, "indices have size {} along axis {}, expected at most that of data, {}",
                   indices.dims[i], i, data.dims[i]);
    }
  }
  auto* s = c.make_state<ScatterElementsState>();
  TREADLE_TRY(find_combine(c, &s->combine));
  static_cast<tensor_ops::IndexedElements&>(*s) = tensor_ops::indexed_elements(data, indices, axis);
  s->bytes = data.byte_size();
  with_width(byte_width(data.type), [&](auto w) {
    const bool wide = indices.type == ElementType::kInt64;
    c.set_kernel(wide ? run_scatter_elements<w.value, int64_t> : run_scatter_elements<w.value, int32_t>, s);
  });
  return {};
}

// --- ScatterND

Status infer_scatter_nd(InferContext& c) {
  const Shape *data = c.shape(0), *indices = c.shape(1), *updates = c.shape(2);
  c.set_output(0, c.input(0));
  if (!data || !indices) return {};
  if (data->empty() || indices->empty())
    return error(Code::kInvalidArgument, "data has shape {} and indices {}, expected at least one axis each",
                 to_string(*data), to_string(*indices));
  const Dim& depth = indices->back();
  if (!depth.is_known()) return {};
  if (depth.value() < 0 || static_cast<size_t>(depth.value()) > data->size()) {
    return error(Code::kInvalidArgument, "indices have {} coordinates, expected at most the rank of data, {}",
                 depth.value(), data->size());
  }
  Shape expected(indices->begin(), indices->end() - 1);
  for (size_t i = static_cast<size_t>(depth.value()); i < data->size(); ++i) expected.push_back((*data)[i]);
  if (updates && is_known(*updates) && is_known(expected) && !same(*updates, expected)) {
    return error(Code::kInvalidArgument, "updates have shape {}, expected {}", to_string(*updates),
                 to_string(expected));
  }
  scatter_symbols(c, tensor_ops::known_coordinates(c, 1));
  return {};
}

struct ScatterNdState {
  int64_t tuples = 1;
  size_t bytes = 0;        // of the data
  size_t slice_bytes = 0;  // of one update
  size_t slice = 0;        // the same in elements
  Ints sizes, strides;     // of the indexed axes; strides in bytes
  CombineRow combine = nullptr;
};

uint32_t run_scatter_nd(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const ScatterNdState*>(state);
  if (const uint32_t failed = copy_data(s.bytes, slots[operands[0]], slots[operands[3]])) return failed;
  const auto* tuple = static_cast<const int64_t*>(slots[operands[1]]);
  const auto* update = static_cast<const char*>(slots[operands[2]]);
  auto* out = static_cast<char*>(slots[operands[3]]);
  const double tuple_ns =
      costs::kIndexNs * static_cast<double>(s.sizes.size()) + kByteNs * static_cast<double>(s.slice_bytes);
  StopPoll stop;
  for (int64_t k = 0; k < s.tuples; ++k, update += s.slice_bytes) {
    if (stop.after(tuple_ns)) return fail(KernelError::kStopped);
    int64_t offset = 0;
    for (size_t d = 0; d < s.sizes.size(); ++d, ++tuple) {
      const int64_t i = checked_index(*tuple, s.sizes[d]);
      if (i < 0) return fail(KernelError::kIndexOutOfRange, *tuple, s.sizes[d]);
      offset += i * s.strides[d];
    }
    if (s.combine) {
      s.combine(out + offset, update, s.slice);
    } else {
      std::memcpy(out + offset, update, s.slice_bytes);
    }
  }
  return 0;
}

// Constant indices: which updates lie side by side in the data, so that one copy writes them.
struct ScatteredRanges {
  struct Range {
    int64_t at = 0, size = 0;  // of the data, in bytes
  };
  size_t bytes = 0;           // of the data
  std::vector<Range> ranges;  // one behind the other in the updates

  // Whether constant indices give fewer ranges than half of the tuples. An index that is
  // out of range is left to the kernel that reads them.
  bool find(const ScatterNdState& nd, const int64_t* tuple) {
    bytes = nd.bytes;
    for (int64_t k = 0; k < nd.tuples; ++k) {
      int64_t offset = 0;
      for (size_t d = 0; d < nd.sizes.size(); ++d, ++tuple) {
        const int64_t i = checked_index(*tuple, nd.sizes[d]);
        if (i < 0) return false;
        offset += i * nd.strides[d];
      }
      const bool goes_on = !ranges.empty() && ranges.back().at + ranges.back().size == offset;
      if (!goes_on && ranges.size() >= static_cast<size_t>(nd.tuples) / 2) return false;
      if (!goes_on) ranges.push_back({offset, 0});
      ranges.back().size += static_cast<int64_t>(nd.slice_bytes);
    }
    return true;
  }
};

uint32_t copy_scattered_ranges(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const ScatteredRanges*>(state);
  if (const uint32_t failed = copy_data(s.bytes, slots[operands[0]], slots[operands[3]])) return failed;
  const auto* update = static_cast<const char*>(slots[operands[2]]);
  auto* out = static_cast<char*>(slots[operands[3]]);
  StopPoll stop;
  for (const ScatteredRanges::Range& range : s.ranges) {
    const auto size = static_cast<size_t>(range.size);
    if (stop.after(costs::kIndexNs + kByteNs * static_cast<double>(size))) return fail(KernelError::kStopped);
    std::memcpy(out + range.at, update, size);
    update += size;
  }
  return 0;
}

Status prepare_scatter_nd(PrepareContext& c) {
  const Operand &data = c.inputs[0], &indices = c.inputs[1];
  const auto depth = static_cast<size_t>(indices.dims.back());
  const size_t width = byte_width(data.type);
  auto* s = c.make_state<ScatterNdState>();
  TREADLE_TRY(find_combine(c, &s->combine));
  s->tuples = element_count_unchecked(indices.dims.span().first(indices.dims.size() - 1));
  for (size_t i = 0; i < depth; ++i) {
    s->sizes.push_back(data.dims[i]);
    s->strides.push_back(data.strides[i] * static_cast<int64_t>(width));
  }
  s->slice = static_cast<size_t>(element_count_unchecked(data.dims.span().subspan(depth)));
  s->slice_bytes = s->slice * width;
  s->bytes = data.byte_size();
  c.set_kernel(run_scatter_nd, s);
  if (!indices.constant || s->combine) return {};
  if (auto* ranges = c.make_state<ScatteredRanges>(); ranges->find(*s, static_cast<const int64_t*>(indices.constant))) {
    c.set_kernel(copy_scattered_ranges, ranges, nullptr, "copied-ranges");
  }
  return {};
}

// --- TensorScatter: rows written into a cache, at a position of each batch's own

Status infer_tensor_scatter(InferContext& c) {
  const Shape *cache = c.shape(0), *update = c.shape(1);
  c.set_output(0, c.input(0));
  const std::string_view mode = c.attributes().get_string("mode", "linear");
  if (mode != "linear" && mode != "circular") {
    return error(Code::kInvalidModel, "mode is {}, expected linear or circular", mode);
  }
  if (!cache) return {};
  TREADLE_ASSIGN(const int64_t axis,
                 normalize_axis(c.attributes().get_int("axis", -2), static_cast<int64_t>(cache->size())));
  if (axis == 0) return error(Code::kInvalidArgument, "axis is 0, expected another one than the batch");
  if (const Shape* starts = c.shape(2); starts && (starts->size() != 1 || differ((*starts)[0], (*cache)[0]))) {
    return error(Code::kInvalidArgument, "write_indices has shape {}, expected [{}], the batch size of the cache",
                 to_string(*starts), (*cache)[0].to_string());
  }
  if (!update) return {};
  bool fits = update->size() == cache->size();
  for (size_t i = 0; fits && i < cache->size(); ++i) {
    if (!(*cache)[i].is_known() || !(*update)[i].is_known()) continue;
    const int64_t have = (*cache)[i].value(), want = (*update)[i].value();
    fits = static_cast<int64_t>(i) == axis ? want <= have : want == have;
  }
  if (fits) return {};
  return error(Code::kInvalidArgument, "update has shape {}, expected that of past_cache {} or less along axis {}",
               to_string(*update), to_string(*cache), axis);
}

struct TensorScatterState {
  size_t bytes = 0;  // of the cache
  size_t slice_bytes = 0;
  int64_t batches = 1, outer = 1, rows = 0, size = 0;
  bool circular = false;
  bool has_indices = false;
  uint32_t output = 0;
};

uint32_t run_tensor_scatter(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const TensorScatterState*>(state);
  auto* out = static_cast<char*>(slots[operands[s.output]]);
  if (const uint32_t failed = copy_data(s.bytes, slots[operands[0]], out)) return failed;
  const auto* update = static_cast<const char*>(slots[operands[1]]);
  const auto* starts = s.has_indices ? static_cast<const int64_t*>(slots[operands[2]]) : nullptr;
  StopPoll stop;
  for (int64_t b = 0; b < s.batches; ++b) {
    const int64_t start = starts ? starts[b] : 0;
    const int64_t last = s.circular ? s.size - 1 : s.size - s.rows;
    if (start < 0 || start > last) return refuse_element({"write_indices", b}, start, 0, last);
    for (int64_t o = 0; o < s.outer; ++o, out += static_cast<size_t>(s.size) * s.slice_bytes) {
      for (int64_t r = 0; r < s.rows; ++r, update += s.slice_bytes) {
        if (stop.after(1 + kByteNs * static_cast<double>(s.slice_bytes))) return fail(KernelError::kStopped);
        const int64_t at = start + r < s.size ? start + r : start + r - s.size;
        std::memcpy(out + static_cast<size_t>(at) * s.slice_bytes, update, s.slice_bytes);
      }
    }
  }
  return 0;
}

Status prepare_tensor_scatter(PrepareContext& c) {
  const Operand& cache = c.inputs[0];
  TREADLE_ASSIGN(const int64_t signed_axis, normalize_axis(c.attributes().get_int("axis", -2), cache.rank()));
  const auto axis = static_cast<size_t>(signed_axis);
  auto* s = c.make_state<TensorScatterState>();
  s->bytes = cache.byte_size();
  s->batches = cache.dims[0];
  s->outer = element_count_unchecked(cache.dims.span().subspan(1, axis - 1));
  s->rows = c.inputs[1].dims[axis];
  s->size = cache.dims[axis];
  s->slice_bytes =
      static_cast<size_t>(element_count_unchecked(cache.dims.span().subspan(axis + 1))) * byte_width(cache.type);
  s->circular = c.attributes().get_string("mode", "linear") == "circular";
  s->has_indices = c.has_input(2);
  s->output = static_cast<uint32_t>(c.inputs.size());
  c.set_kernel(run_tensor_scatter, s);
  return {};
}

// Axes of data and updates behind those that the indices name.
Status scattered_nd_axes(AxisContext& c) {
  const Dim& named = c.size(1, c.rank(1) - 1);
  if (c.runs_along(1) || !named.is_known() || c.in(0) < named.value())
    return looks_along("it writes to positions of it");
  if (c.in(2) != c.in(0) + c.rank(2) - c.rank(0)) return looks_along("not all of its inputs run along it");
  return c.give(0, c.in(0));
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Scatter, "") {
  op.since(9)
      .in("data", "T")
      .in("indices", "Tind")
      .in("updates", "T")
      .out("output", "T")
      .attr("axis", 0)
      .type("T", types::kAllTensors)
      .type("Tind", types::kIndices);
  op.since(11).deprecated();
  op.infer(infer_scatter_elements)
      .updates()
      .prepare(prepare_scatter_elements)
      .compute(compute_scatter)
      .can_fail_unless(picks_by_constants)
      .axes(axes::elements_along_axis, axes::shift_axis_of_all);
}

TREADLE_OP(ScatterElements, "") {
  op.since(11)
      .in("data", "T")
      .in("indices", "Tind")
      .in("updates", "T")
      .out("output", "T")
      .attr("axis", 0)
      .type("T", types::kAllTensors)
      .type("Tind", types::kIndices);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.since(16).attr("reduction", "none");
  op.since(18);
  op.infer(infer_scatter_elements)
      .updates()
      .prepare(prepare_scatter_elements)
      .compute(compute_scatter)
      .can_fail_unless(picks_by_constants)
      .axes(axes::elements_along_axis, axes::shift_axis_of_all);
}

TREADLE_OP(ScatterND, "") {
  op.since(11)
      .in("data", "T")
      .in("indices", "tensor(int64)")
      .in("updates", "T")
      .out("output", "T")
      .type("T", types::kAllTensors);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.since(16).attr("reduction", "none");
  op.since(18);
  op.infer(infer_scatter_nd)
      .updates()
      .prepare(prepare_scatter_nd)
      .compute(compute_scatter)
      .can_fail()
      .axes(scattered_nd_axes);
}

TREADLE_OP(TensorScatter, "") {
  op.since(24)
      .in("past_cache", "T")
      .in("update", "T")
      .in("write_indices", "tensor(int64)", Arity::kOptional)
      .out("present_cache", "T")
      .attr("axis", -2)
      .attr("mode", "linear")
      .type("T", types::kAllTensorsIr12);
  op.infer(infer_tensor_scatter)
      .updates()
      .prepare(prepare_tensor_scatter)
      .compute(compute_scatter)
      .can_fail()
      .axes(axes::entries_of<0b111>);
}
