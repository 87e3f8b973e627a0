#include "op/axis_rules.h"
#include "op/effects.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "ops/costs.h"
#include "ops/tensor/copy.h"
#include "ops/tensor/gather.h"
#include "ops/tensor/indexed_elements.h"
#include "ops/tensor/walk.h"

namespace treadle {
namespace {

using tensor_ops::Bytes;
using tensor_ops::checked_index;
using tensor_ops::IndexedElements;
using tensor_ops::out_of_range;

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
  if (c.wants_symbols(0) && indices->size() == 1) tensor_ops::gather_symbols(c, c.dims_value(1));
  c.set_output(0, c.element(0), *indices);
  return {};
}

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
  const auto& s = *static_cast<const IndexedElements*>(state);
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

void say_gather_elements(PrepareContext& c, const IndexedElements& s) {
  tensor_ops::say_gathered(c, [&](int64_t k) {
    const int64_t i = tensor_ops::constant_position(c.inputs[1], k, s.n);
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
  auto* s = c.make_state<IndexedElements>();
  *s = tensor_ops::indexed_elements(data, indices, axis);
  say_gather_elements(c, *s);
  tensor_ops::with_width(byte_width(data.type), [&](auto w) {
    const bool wide = indices.type == ElementType::kInt64;
    c.set_kernel(wide ? run_gather_elements<w.value, int64_t> : run_gather_elements<w.value, int32_t>, s);
  });
  return {};
}

}  // namespace
}  // namespace treadle

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
