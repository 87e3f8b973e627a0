#include "ops/tensor/gather.h"

#include <cstring>

#include "kernels/convert.h"
#include "kernels/move.h"
#include "op/axis_rules.h"
#include "op/effects.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/size_rules.h"
#include "op/text_kernel.h"
#include "ops/costs.h"

namespace treadle {
namespace {

using tensor_ops::checked_index;
using tensor_ops::out_of_range;

Status infer_gather(InferContext& c) {
  const Shape *data = c.shape(0), *indices = c.shape(1);
  if (!data) return c.set_output(0, c.element(0)), Status();
  if (data->empty()) return error(Code::kInvalidArgument, "expected data of rank 1 or more, found a scalar");
  TREADLE_ASSIGN(const int64_t axis,
                 normalize_axis(c.attributes().get_int("axis", 0), static_cast<int64_t>(data->size())));
  if (!indices) return c.set_output(0, c.element(0)), Status();
  Shape out = size_rules::gather(*data, static_cast<size_t>(axis), *indices);
  if (c.wants_symbols(0) && out.size() <= 1) tensor_ops::gather_symbols(c, c.dims_value(1));
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

void say_gather(PrepareContext& c, const GatherState& s) {
  const auto row = static_cast<int64_t>(s.bytes / byte_width(c.inputs[0].type));
  const auto count = static_cast<int64_t>(s.count);
  if (c.form && c.most_moves > 0 && !c.inputs[1].constant) {
    c.form->kind = ElementwiseForm::Kind::kGather;
    c.form->gather = {static_cast<int64_t>(s.outer), s.n, row, count};
    return;
  }
  tensor_ops::say_gathered(c, [&](int64_t k) {
    const int64_t i = tensor_ops::constant_position(c.inputs[1], k / row % count, s.n);
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
