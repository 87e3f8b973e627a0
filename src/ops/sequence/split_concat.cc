// SplitToSequence and ConcatFromSequence, which convert tensors to sequences and back.

#include <algorithm>
#include <cstring>
#include <vector>

#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "ops/costs.h"

namespace treadle {
namespace {

// A tensor around one axis, as [outer, size, inner].
struct AxisView {
  int64_t outer = 1, size = 1, inner = 1;

  AxisView(const Dims& dims, int64_t axis) {
    for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i) {
      (i < axis ? outer : i == axis ? size : inner) *= dims[static_cast<size_t>(i)];
    }
  }
};

// Copies [outer, count] runs of elements. Strides of `from` and `to` are in elements per outer index.
Status copy_runs(const Tensor& from, int64_t from_start, int64_t from_stride, Tensor& to, int64_t to_start,
                 int64_t to_stride, int64_t outer, int64_t count, StopPoll& stop) {
  if (count == 0) return {};
  const auto width = static_cast<int64_t>(byte_width(from.type()));
  for (int64_t o = 0; o < outer; ++o) {
    const int64_t read = from_start + o * from_stride, written = to_start + o * to_stride;
    if (is_string(from.type())) {
      for (int64_t i = 0; i < count; ++i) {
        to.mutable_data<String>()[written + i] = from.data<String>()[read + i];
        if (stop.after(text_ns(from.data<String>()[read + i]))) return stopped();
      }
    } else {
      copy_in_pieces(to.mutable_data<char>() + written * width, from.data<char>() + read * width,
                     static_cast<size_t>(count * width));
      if (stop.after(1 + kByteNs * static_cast<double>(count * width))) return stopped();
    }
  }
  return {};
}

// --- SplitToSequence

// Whether elements lose the axis: each is one slice, as no sizes are given.
bool drops_axis(const ir::Attributes& attributes, bool has_split) {
  return !has_split && attributes.get_int("keepdims", 1) == 0;
}

// The size of all parts; unknown if they differ.
Dim common_part(const Tensor& split, const Dim& size) {
  if (split.element_count() == 0) return Dim::unknown();
  const int64_t first = split.int64_at(0);
  if (split.rank() == 0) {
    return size.is_known() && size.value() % first == 0 ? Dim(first) : Dim::unknown();
  }
  for (int64_t i = 1; i < split.element_count(); ++i) {
    if (split.int64_at(i) != first) return Dim::unknown();
  }
  return Dim(first);
}

Status infer_split_to_sequence(InferContext& c) {
  const Shape* shape = c.shape(0);
  if (!shape) return c.set_output(0, Type::sequence(Type::tensor(c.element(0)))), Status();
  TREADLE_ASSIGN(const int64_t signed_axis,
                 normalize_axis(c.attributes().get_int("axis", 0), static_cast<int64_t>(shape->size())));
  const auto axis = static_cast<size_t>(signed_axis);
  Shape element = *shape;
  if (drops_axis(c.attributes(), c.has_input(1))) {
    element.erase(axis);
  } else if (!c.has_input(1)) {
    element[axis] = 1;
  } else {
    const Tensor* split = c.value(1);
    if (split && split->rank() == 0 && split->int64_at(0) <= 0) {
      return error(Code::kInvalidArgument, "split is {}, expected 1 or more", split->int64_at(0));
    }
    element[axis] = split ? common_part(*split, (*shape)[axis]) : Dim::unknown();
  }
  c.set_output(0, Type::sequence(Type::tensor(c.element(0), std::move(element))));
  return {};
}

Result<Ints> part_sizes(const Tensor* split, int64_t size) {
  Ints parts;
  if (!split || split->rank() == 0) {
    const int64_t chunk = split ? split->int64_at(0) : 1;
    if (chunk < 1) return error(Code::kInvalidArgument, "split is {}, expected 1 or more", chunk);
    for (int64_t done = 0; done < size; done += chunk) parts.push_back(std::min(chunk, size - done));
    return parts;
  }
  parts = split->to_int64s();
  int64_t sum = 0;
  for (int64_t part : parts) {
    if (part < 0 || part > size)
      return error(Code::kInvalidArgument, "split holds {}, expected 0 to {}: the size of the axis", part, size);
    sum += part;
  }
  if (sum != size) return error(Code::kInvalidArgument, "sizes of split add up to {}, expected {}", sum, size);
  return parts;
}

Status compute_split_to_sequence(ComputeContext& c) {
  const Tensor& in = c.tensor(0);
  TREADLE_ASSIGN(const int64_t axis, normalize_axis(c.attributes().get_int("axis", 0), in.rank()));
  const AxisView view(in.dims(), axis);
  TREADLE_ASSIGN(const Ints parts, part_sizes(c.has_input(1) ? &c.tensor(1) : nullptr, view.size));
  const bool drop = drops_axis(c.attributes(), c.has_input(1));
  std::vector<AnyValue> elements;
  elements.reserve(parts.size());
  StopPoll stop;
  int64_t start = 0;
  for (int64_t part : parts) {
    Dims dims = in.dims();
    if (drop) {
      dims.erase(static_cast<size_t>(axis));
    } else {
      dims[static_cast<size_t>(axis)] = part;
    }
    TREADLE_ASSIGN(Tensor element, Tensor::allocate(in.type(), std::move(dims)));
    TREADLE_TRY(copy_runs(in, start * view.inner, view.size * view.inner, element, 0, part * view.inner, view.outer,
                          part * view.inner, stop));
    if (stop.after(costs::kSplitPartNs)) return stopped();
    elements.emplace_back(std::move(element));
    start += part;
  }
  c.outputs[0] = AnyValue(Sequence(Type::tensor(in.type()), std::move(elements)));
  return {};
}

// --- ConcatFromSequence

Status infer_concat_from_sequence(InferContext& c) {
  if (!c.has_input(0)) return {};
  const Type& sequence = c.input(0);
  if (sequence.kind != Type::Kind::kSequence || !sequence.child->is_tensor()) {
    return error(Code::kInvalidArgument, "expected a sequence of tensors, found {}", sequence.to_string());
  }
  const Type& element = *sequence.child;
  if (!element.has_shape) return c.set_output(0, element.element), Status();
  const bool stack = c.attributes().get_int("new_axis", 0) != 0;
  const auto rank = static_cast<int64_t>(element.shape.size()) + stack;
  TREADLE_ASSIGN(const int64_t axis, normalize_axis(c.attributes().get_int("axis", 0), rank));
  Shape out = element.shape;
  if (stack) out.insert(static_cast<size_t>(axis), Dim::unknown());
  out[static_cast<size_t>(axis)] = Dim::unknown();  // the type does not contain the number of elements
  c.set_output(0, element.element, std::move(out));
  return {};
}

// Sizes of the result. Elements must agree on every axis except the joined one.
Result<Dims> joined_dims(std::span<const AnyValue> elements, int64_t axis, bool stack) {
  const Tensor& first = elements[0].tensor();
  Dims dims = first.dims();
  if (stack) {
    dims.insert(static_cast<size_t>(axis), 0);
  } else {
    dims[static_cast<size_t>(axis)] = 0;
  }
  for (const AnyValue& value : elements) {
    Dims own = value.tensor().dims();
    if (stack) own.insert(static_cast<size_t>(std::min<int64_t>(axis, value.tensor().rank())), 1);
    bool agrees = own.size() == dims.size() && value.tensor().type() == first.type();
    for (size_t d = 0; agrees && d < dims.size(); ++d) agrees = static_cast<int64_t>(d) == axis || own[d] == dims[d];
    if (!agrees) {
      return error(Code::kRuntime, "an element of the sequence is {}{}, expected {}{} but for the size of axis {}",
                   name(value.tensor().type()), to_string(value.tensor().dims()), name(first.type()),
                   to_string(first.dims()), axis);
    }
    dims[static_cast<size_t>(axis)] += own[static_cast<size_t>(axis)];
  }
  return dims;
}

Status compute_concat_from_sequence(ComputeContext& c) {
  const Sequence& sequence = c.inputs[0].sequence();
  if (sequence.size() == 0)
    return error(Code::kRuntime, "the sequence is empty, expected at least one element to join");
  const auto elements = sequence.elements();
  const Tensor& first = elements[0].tensor();
  const bool stack = c.attributes().get_int("new_axis", 0) != 0;
  TREADLE_ASSIGN(const int64_t axis, normalize_axis(c.attributes().get_int("axis", 0), first.rank() + stack));
  TREADLE_ASSIGN(Dims dims, joined_dims(elements, axis, stack));
  TREADLE_ASSIGN(Tensor * out, c.allocate(0, first.type(), std::move(dims)));
  const AxisView view(out->dims(), axis);
  StopPoll stop;
  int64_t start = 0;
  for (const AnyValue& value : elements) {
    const Tensor& in = value.tensor();
    const int64_t run = (stack ? 1 : in.dims()[static_cast<size_t>(axis)]) * view.inner;
    TREADLE_TRY(copy_runs(in, 0, run, *out, start, view.size * view.inner, view.outer, run, stop));
    start += run;
  }
  return {};
}

}  // namespace
}  // namespace treadle

TREADLE_OP(SplitToSequence, "") {
  op.since(11)
      .in("input", "T")
      .in("split", "I", Arity::kOptional)
      .out("output_sequence", "S")
      .attr("axis", 0)
      .attr("keepdims", 1)
      .type("T", types::kAllTensors)
      .type("I", types::kIndices)
      .type("S", sequences_of(types::kAllTensors));
  op.since(24).type("T", types::kAllTensorsIr4).type("S", sequences_of(types::kAllTensorsIr4));
  op.infer(infer_split_to_sequence).compute(compute_split_to_sequence).can_fail().no_axes("it works on sequences");
}

TREADLE_OP(ConcatFromSequence, "") {
  op.since(11)
      .in("input_sequence", "S")
      .out("concat_result", "T")
      .required("axis", ir::AttributeKind::kInt)
      .attr("new_axis", 0)
      .type("S", sequences_of(types::kAllTensors))
      .type("T", types::kAllTensors);
  op.infer(infer_concat_from_sequence)
      .compute(compute_concat_from_sequence)
      .can_fail()
      .no_axes("it works on sequences");
}
