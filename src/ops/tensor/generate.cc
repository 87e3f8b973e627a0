// Operators that make tensors from few numbers: Range, EyeLike, OneHot.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/convert.h"
#include "kernels/move.h"
#include "op/axis_rules.h"
#include "op/dynamic_kernel.h"
#include "op/moves.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/pieces.h"
#include "op/size_rules.h"
#include "op/sizes.h"
#include "ops/costs.h"
#include "ops/tensor/copy.h"
#include "ops/tensor/walk.h"

namespace treadle {
namespace {

using tensor_ops::Bytes;
using tensor_ops::checked_index;
using tensor_ops::with_width;

// --- Range

// Sums of 64-bit numbers need more bits.
struct WideSizes : WholeSizes<__int128> {
  Status fail;  // why a rule said false

  template <class Message>
  bool require(bool truth, const Message& message) {
    if (!truth) fail = message();
    return truth;
  }
};

Result<int64_t> integer_count(int64_t start, int64_t limit, int64_t delta) {
  WideSizes sizes;
  __int128 count = 0;
  if (!size_rules::range<WideSizes>(sizes, start, limit, delta, count)) return std::move(sizes.fail);
  if (count > (__int128{1} << 62)) return error(Code::kLimit, "a range from {} to {} is too long", start, limit);
  return static_cast<int64_t>(count);
}

Result<int64_t> float_count(double start, double limit, double delta) {
  const double count = std::ceil((limit - start) / delta);
  if (delta == 0 || std::isnan(count)) {
    return error(Code::kInvalidArgument,
                 "start, limit and delta are {}, {} and {}, expected numbers that make a range of some length", start,
                 limit, delta);
  }
  if (count > 4.6e18) return error(Code::kLimit, "a range from {} to {} by {} is too long", start, limit, delta);
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

Status check_scalars(const InferContext& c) {
  for (size_t i = 0; i < 3; ++i) {
    const Dim count = length_of(c, i);
    if (count.is_known() && count.value() != 1) {
      return error(Code::kInvalidArgument, "{} has {} elements, expected 1", c.node.version->inputs[i].name,
                   count.value());
    }
  }
  return {};
}

std::optional<Dim> scalar_dim(const InferContext& c, size_t i) {
  const auto dims = c.dims_value(i);
  if (!dims || dims->size() != 1) return std::nullopt;
  return (*dims)[0];
}

Status infer_symbolic_range(InferContext& c) {
  const auto start = scalar_dim(c, 0), limit = scalar_dim(c, 1), delta = scalar_dim(c, 2);
  Dim count;
  DimSizes sizes;
  if (start && limit && delta && delta->is_known() && size_rules::range(sizes, *start, *limit, *delta, count)) {
    if (c.wants_symbols(0) && count.is_known() && count.value() <= 64) {
      Shape values;
      for (int64_t i = 0; i < count.value(); ++i) values.push_back(*start + *delta * i);
      c.set_output_symbols(0, std::move(values));
    }
  }
  c.set_output(0, c.element(0), {std::move(count)});
  return {};
}

Status infer_range(InferContext& c) {
  TREADLE_TRY(check_scalars(c));
  const Tensor *start = c.value(0), *limit = c.value(1), *delta = c.value(2);
  if (!start || !limit || !delta || is_integer(c.element(0))) {
    if (is_integer(c.element(0)) && start && limit && delta) {
      const int64_t first = start->int64_at(0), last = limit->int64_at(0), step = delta->int64_at(0);
      TREADLE_ASSIGN(const int64_t count, integer_count(first, last, step));
      if (!c.wants_symbols(0)) return c.set_output(0, c.element(0), {Dim(count)}), Status();
    }
    return infer_symbolic_range(c);
  }
  TREADLE_ASSIGN(const int64_t count, float_count(start->double_at(0), limit->double_at(0), delta->double_at(0)));
  c.set_output(0, c.element(0), {Dim(count)});
  return {};
}

template <class T>
struct RangeState {
  T start{}, delta{};
  int64_t count = 0;
  ElementType type{};
};

template <class T>
uint32_t run_range(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const RangeState<T>*>(state);
  auto* out = static_cast<T*>(slots[operands[3]]);
  return unless_stopped(in_pieces(s.count, kByteNs * sizeof(T), [&](int64_t begin, int64_t end) {
    if constexpr (std::is_integral_v<T>) {
      const auto start = static_cast<uint64_t>(s.start), delta = static_cast<uint64_t>(s.delta);
      for (int64_t i = begin; i < end; ++i) out[i] = static_cast<T>(start + delta * static_cast<uint64_t>(i));
    } else {
      for (int64_t i = begin; i < end; ++i) out[i] = s.start + static_cast<T>(i) * s.delta;
    }
  }));
}

// Half precision: computed in the stash type T, rounded once.
template <class T>
uint32_t run_narrow_range(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const RangeState<T>*>(state);
  constexpr ElementType kFrom = std::is_same_v<T, float> ? ElementType::kFloat : ElementType::kDouble;
  auto* out = static_cast<uint16_t*>(slots[operands[3]]);
  return unless_stopped(in_pieces(s.count, costs::kRoundedRangeNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T value = s.start + static_cast<T>(i) * s.delta;
      kernels::cast(kFrom, s.type, &value, out + i, 1);
    }
  }));
}

template <class T>
void set_range(PrepareContext& c, KernelFn run) {
  const ElementType type = c.inputs[0].type;
  auto read = [&](size_t i) -> T {
    const Tensor t = Tensor::from_buffer(type, c.inputs[i].dims, {}, c.inputs[i].constant);
    return is_integer(type) ? static_cast<T>(t.int64_at(0)) : static_cast<T>(t.double_at(0));
  };
  c.set_kernel(run, c.make_state<RangeState<T>>(RangeState<T>{read(0), read(2), c.outputs[0].element_count(), type}));
}

// Of any length.
template <class T>
struct DynamicRange {
  ElementType type{};
};

template <class T>
uint32_t run_dynamic_range(const DynamicRange<T>& s, DynamicCall& call) {
  T bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    if (call.inputs[i].count != 1) return kNotDynamic;
    bounds[i] = *static_cast<const T*>(call.inputs[i].data);
  }
  const auto [start, limit, delta] = bounds;
  Result<int64_t> count = 0;
  if constexpr (std::is_integral_v<T>) {
    count = integer_count(start, limit, delta);
  } else {
    count = float_count(start, limit, delta);
  }
  if (!count.ok()) return kNotDynamic;
  const int64_t dims[] = {*count};
  void* to = call.make(0, dims);
  if (!to) return kNotDynamic;
  const RangeState<T> state{start, delta, *count, s.type};
  void* const slots[] = {to};
  static constexpr uint32_t kOperands[] = {0, 0, 0, 0};
  return run_range<T>(&state, slots, kOperands);
}

template <class T>
DynamicKernel dynamic_range_of(const DynamicContext& c) {
  return dynamic_kernel<DynamicRange<T>, run_dynamic_range<T>>(c, DynamicRange<T>{c.element(0)});
}

DynamicKernel dynamic_range(const DynamicContext& c) {
  switch (c.element(0)) {
    case ElementType::kFloat:
      return dynamic_range_of<float>(c);
    case ElementType::kDouble:
      return dynamic_range_of<double>(c);
    case ElementType::kInt16:
      return dynamic_range_of<int16_t>(c);
    case ElementType::kInt32:
      return dynamic_range_of<int32_t>(c);
    case ElementType::kInt64:
      return dynamic_range_of<int64_t>(c);
    default:
      return {};
  }
}

Status prepare_range(PrepareContext& c) {
  switch (c.inputs[0].type) {
    case ElementType::kFloat:
      return set_range<float>(c, run_range<float>), Status();
    case ElementType::kDouble:
      return set_range<double>(c, run_range<double>), Status();
    case ElementType::kInt16:
      return set_range<int16_t>(c, run_range<int16_t>), Status();
    case ElementType::kInt32:
      return set_range<int32_t>(c, run_range<int32_t>), Status();
    case ElementType::kInt64:
      return set_range<int64_t>(c, run_range<int64_t>), Status();
    default:
      break;
  }
  const int64_t stash = c.attributes().get_int("stash_type", 1);
  if (stash == static_cast<int64_t>(ElementType::kFloat)) return set_range<float>(c, run_narrow_range<float>), Status();
  if (stash == static_cast<int64_t>(ElementType::kDouble)) {
    return set_range<double>(c, run_narrow_range<double>), Status();
  }
  return error(Code::kInvalidModel, "stash_type is {}, expected 1 (float) or 11 (double)", stash);
}

// --- EyeLike

Result<ElementType> eye_type(const InferContext& c) {
  const ir::Attribute* dtype = c.attributes().find("dtype");
  if (!dtype) return c.element(0);
  const ElementType type = element_type_from_number(dtype->as_int());
  if (type == ElementType::kUndefined || !types::kNumericBoolBf16.contains(type)) {
    return error(Code::kInvalidModel, "attribute dtype is {}, expected the number of a numeric type or of bool",
                 dtype->as_int());
  }
  return type;
}

Status infer_eye_like(InferContext& c) {
  TREADLE_ASSIGN(const ElementType type, eye_type(c));
  const Shape* shape = c.shape(0);
  if (shape && shape->size() != 2) {
    return error(Code::kInvalidArgument, "expected an input of rank 2, found shape {}", to_string(*shape));
  }
  c.set_output(0, type, shape ? *shape : unknown_shape(2));
  return {};
}

struct EyeState {
  int64_t rows = 0, columns = 0, k = 0;
  alignas(16) std::byte one[16] = {};
};

template <size_t W>
uint32_t run_eye(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const EyeState*>(state);
  auto* out = static_cast<Bytes<W>*>(slots[operands[1]]);
  const size_t bytes = static_cast<size_t>(s.rows * s.columns) * W;
  if (!fill_in_pieces(out, 0, bytes)) return fail(KernelError::kStopped);
  return unless_stopped(in_pieces(s.rows, costs::kIndexNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t j = i + s.k;
      if (j >= 0 && j < s.columns) std::memcpy(out + i * s.columns + j, s.one, W);
    }
  }));
}

Status prepare_eye_like(PrepareContext& c) {
  const Operand& out = c.outputs[0];
  auto* s = c.make_state<EyeState>();
  s->rows = out.dims[0];
  s->columns = out.dims[1];
  // Beyond the matrix every diagonal is empty; keeps row + k from overflowing.
  s->k = std::clamp(c.attributes().get_int("k", 0), -s->rows, s->columns);
  const float one = 1;
  kernels::cast(ElementType::kFloat, out.type, &one, s->one, 1);
  with_width(byte_width(out.type), [&](auto w) { c.set_kernel(run_eye<w.value>, s); });
  return {};
}

// --- OneHot

Status infer_one_hot(InferContext& c) {
  const Shape* indices = c.shape(0);
  Dim depth;
  if (const Shape* given = c.shape(1); given && differ(element_count(*given), Dim(1))) {
    return error(Code::kInvalidArgument, "depth has shape {}, expected one element", to_string(*given));
  }
  if (const Tensor* t = c.value(1); t && t->element_count() == 1) {
    depth = t->int64_at(0);
    if (depth.value() < 0) return error(Code::kInvalidArgument, "depth is {}, expected 0 or more", depth.value());
  } else if (const auto dims = c.dims_value(1); dims && dims->size() == 1) {
    depth = (*dims)[0];
  }
  const Dim pair = length_of(c, 2);
  if (pair.is_known() && pair.value() != 2) {
    return error(Code::kInvalidArgument, "values has {} elements, expected 2", pair.value());
  }
  if (!indices) return c.set_output(0, c.element(2)), Status();
  TREADLE_ASSIGN(const int64_t axis,
                 normalize_axis(c.attributes().get_int("axis", -1), static_cast<int64_t>(indices->size()) + 1));
  Shape out = *indices;
  out.insert(static_cast<size_t>(axis), depth);
  c.set_output(0, c.element(2), std::move(out));
  return {};
}

// The output is [outer, depth, inner], the indices [outer, inner].
struct OneHotState {
  int64_t outer = 1, depth = 0, inner = 1;
  ElementType index_type{};
  uint32_t scratch = 0;  // operand of the indices as int64, where they are something else
};

template <size_t W>
uint32_t run_one_hot(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const OneHotState*>(state);
  const auto count = static_cast<size_t>(s.outer * s.inner);
  const void* given = slots[operands[0]];
  const auto* indices = static_cast<const int64_t*>(given);
  if (s.index_type != ElementType::kInt64) {
    auto* wide = static_cast<int64_t*>(slots[operands[s.scratch]]);
    parallel_convert(kernels::make_converter(s.index_type, ElementType::kInt64), given, wide, count);
    indices = wide;
  }
  const auto* values = static_cast<const Bytes<W>*>(slots[operands[2]]);
  auto* out = static_cast<Bytes<W>*>(slots[operands[3]]);
  kernels::fill(W, values, out, count * static_cast<size_t>(s.depth));
  return unless_stopped(in_pieces(s.outer * s.inner, costs::kIndexNs, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t at = checked_index(indices[k], s.depth);
      if (at >= 0) out[(k / s.inner * s.depth + at) * s.inner + k % s.inner] = values[1];
    }
  }));
}

void say_one_hot(PrepareContext& c, const OneHotState& s) {
  constexpr size_t kValues = 2;
  Moves* moves = c.inputs[0].constant ? moves_of(c) : nullptr;
  if (!moves) return;
  std::vector<int64_t> indices(static_cast<size_t>(c.inputs[0].element_count()));
  kernels::cast(s.index_type, ElementType::kInt64, c.inputs[0].constant, indices.data(), indices.size());
  for (size_t e = 0; e < moves->from[0].size(); ++e) {
    const auto element = static_cast<int64_t>(e);
    const int64_t inner = element % s.inner, position = element / s.inner % s.depth;
    const int64_t index = indices[static_cast<size_t>(element / s.inner / s.depth * s.inner + inner)];
    moves->from[0][e] = moves->first[kValues] + (checked_index(index, s.depth) == position ? 1 : 0);
  }
}

Status prepare_one_hot(PrepareContext& c) {
  const Operand &indices = c.inputs[0], &out = c.outputs[0];
  TREADLE_ASSIGN(const int64_t axis, normalize_axis(c.attributes().get_int("axis", -1), out.rank()));
  auto* s = c.make_state<OneHotState>();
  for (int64_t i = 0; i < out.rank(); ++i) {
    (i < axis ? s->outer : i == axis ? s->depth : s->inner) *= i == axis ? 1 : out.dims[static_cast<size_t>(i)];
  }
  s->depth = out.dims[static_cast<size_t>(axis)];
  s->index_type = indices.type;
  s->scratch = c.scratch_operand();
  if (indices.type != ElementType::kInt64) c.scratch_bytes = static_cast<size_t>(indices.element_count()) * 8;
  say_one_hot(c, *s);
  with_width(byte_width(out.type), [&](auto w) { c.set_kernel(run_one_hot<w.value>, s); });
  return {};
}

Status one_hot_axes(AxisContext& c) {
  TREADLE_TRY(axes::only_first(c));
  const int64_t axis = c.axis(c.rank(0) + 1, -1);
  return c.give(0, c.in(0) + (c.in(0) >= axis ? 1 : 0));
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Range, "") {
  op.since(11)
      .in("start", "T")
      .in("limit", "T")
      .in("delta", "T")
      .out("output", "T")
      .type("T", tensors(ElementType::kFloat, ElementType::kInt16, ElementType::kInt32, ElementType::kInt64,
                         ElementType::kDouble));
  op.since(27)
      .attr("stash_type", 1)
      .type("T", tensors(ElementType::kFloat, ElementType::kInt16, ElementType::kInt32, ElementType::kInt64,
                         ElementType::kFloat16, ElementType::kDouble, ElementType::kBfloat16));
  op.infer(infer_range)
      .prepare(prepare_range)
      .dynamic(dynamic_range)
      .sizes(SizeRule::kRange)
      .shape_inputs({0, 1, 2})
      .no_axes("its operands are single numbers")
      .over_time(TimeRule::kRange);
}

TREADLE_OP(EyeLike, "") {
  op.since(9)
      .in("input", "T1")
      .out("output", "T2")
      .optional("dtype", ir::AttributeKind::kInt)
      .attr("k", 0)
      .type("T1", types::kNumericBool)
      .type("T2", types::kNumericBool);
  op.since(22).type("T1", types::kNumericBoolBf16).type("T2", types::kNumericBoolBf16);
  op.infer(infer_eye_like).prepare(prepare_eye_like).no_axes("it looks at positions along it");
}

TREADLE_OP(OneHot, "") {
  op.since(9)
      .in("indices", "T1")
      .in("depth", "T2")
      .in("values", "T3")
      .out("output", "T3")
      .attr("axis", -1)
      .type("T1", types::kNumeric)
      .type("T2", types::kNumeric)
      .type("T3", types::kAllTensors);
  op.since(11);
  op.since(28).type("T3", types::kAllTensorsIr4);
  op.infer(infer_one_hot)
      .prepare(prepare_one_hot)
      .compute(compute_by_position)
      .moves_elements()
      .shape_inputs({1})
      .axes(one_hot_axes, axes::shift_axis);
}
