#include <utility>
#include <vector>

#include "kernels/move.h"
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

using tensor_ops::CopiedPart;

// Whether something is known of floats that sizes come from.
bool has_reals(const InferContext& c) {
  return std::ranges::any_of(c.symbols, [](const Shape* known) { return known != nullptr; });
}

void concat_symbols(InferContext& c) {
  Shape all;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (const auto values = small_contents(c, i)) {
      for (const Dim& d : *values) all.push_back(d);
      continue;
    }
    const Dim length = length_of(c, i);
    if (!length.is_known() || length.value() > 64) return;
    for (int64_t k = 0; k < length.value(); ++k) all.push_back(Dim::unknown());
  }
  c.set_output_symbols(0, std::move(all));
}

Result<int64_t> concat_axis(const ir::NodeInfo& node, int64_t rank) {
  if (rank == 0)
    return error(Code::kInvalidArgument,
                 "an input is a scalar, expected at least one axis: scalars cannot be concatenated");
  return normalize_axis(node.attributes.get_int("axis", 1), rank);
}

Status infer_concat(InferContext& c) {
  DimSizes sizes;
  Shape out;
  bool complete = true, first = true;
  int64_t axis = 0;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Shape* shape = c.shape(i);
    if (!shape) {
      complete = false;
      continue;
    }
    if (std::exchange(first, false)) {
      TREADLE_ASSIGN(axis, concat_axis(c.node, static_cast<int64_t>(shape->size())));
      out = *shape;
      continue;
    }
    if (!size_rules::concat(sizes, out, *shape, static_cast<size_t>(axis))) return sizes.status();
  }
  if (first) return c.set_output(0, c.element(0)), Status();
  if (!complete) out[static_cast<size_t>(axis)] = Dim::unknown();
  if (complete && out.size() == 1 && c.wants_symbols(0) && (is_integer(c.element(0)) || has_reals(c))) {
    concat_symbols(c);
  }
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

Status prepare_concat(PrepareContext& c) {
  const Operand& out = c.outputs[0];
  TREADLE_ASSIGN(const int64_t axis, concat_axis(c.node, out.rank()));
  const int64_t stride = out.strides[static_cast<size_t>(axis)];
  std::vector<CopiedPart> copied;
  int64_t offset = 0;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Operand& in = c.inputs[i];
    copied.push_back({i, 0, in.dims, in.strides, out.strides, 0, offset});
    offset += in.dims[static_cast<size_t>(axis)] * stride;
  }
  return tensor_ops::set_copies_kernel(c, copied);
}

struct DynamicConcat {
  int64_t axis = 0;
  size_t width = 0;
};

uint32_t run_dynamic_concat(const DynamicConcat& s, DynamicCall& call) {
  // Values that are long when something is appended to them are better off growing in place.
  constexpr int64_t kLongest = 1024;
  const DynamicOperand& first = call.inputs[0];
  const auto found = first.axis(s.axis);
  if (!found || first.count * static_cast<int64_t>(s.width) > kLongest) return kNotDynamic;
  const size_t axis = *found;
  NumberSizes sizes;
  Dims dims = *first.dims;
  for (const DynamicOperand& in : call.inputs.subspan(1)) {
    if (!size_rules::concat(sizes, dims, *in.dims, axis)) return kNotDynamic;
  }
  auto* to = static_cast<std::byte*>(call.make(0, dims));
  if (!to) return kNotDynamic;
  int64_t outer = 1;
  for (size_t d = 0; d < axis; ++d) outer *= dims[d];
  if (outer == 0) return 0;
  const auto width = static_cast<int64_t>(s.width);
  int64_t row = 0;
  for (const DynamicOperand& in : call.inputs) row += in.count / outer * width;
  for (const DynamicOperand& in : call.inputs) {
    const int64_t bytes = in.count / outer * width;
    if (bytes == 0) continue;
    kernels::copy_blocks(in.data, bytes, to, row, static_cast<size_t>(bytes), static_cast<size_t>(outer));
    to += bytes;
  }
  return 0;
}

DynamicKernel dynamic_concat(const DynamicContext& c) {
  const DynamicConcat concat{c.attributes().get_int("axis", 1), byte_width(c.element(0))};
  return dynamic_kernel<DynamicConcat, run_dynamic_concat>(c, concat);
}

Status concat_axes(AxisContext& c) {
  const int64_t axis = c.in(0);
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (c.in(i) != axis || axis == kNoAxis) return looks_along("not all that it puts together runs along it");
  }
  if (c.axis(c.rank(0), 1) == axis) return looks_along("it puts parts together along it");
  return c.give(0, axis);
}

}  // namespace
}  // namespace treadle
TREADLE_OP(Concat, "") {
  op.since(1)
      .in("inputs", "T", Arity::kVariadic)
      .out("concat_result", "T")
      .optional("axis", ir::AttributeKind::kInt)
      .type("T", types::kFloats);
  op.since(4).required("axis", ir::AttributeKind::kInt).type("T", types::kAllTensors);
  op.since(11);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.appends();
  op.infer(infer_concat)
      .prepare(prepare_concat)
      .compute(compute_by_position)
      .moves_elements()
      .dynamic(dynamic_concat)
      .sizes(SizeRule::kConcat)
      .axes(concat_axes, axes::shift_axis_of_all)
      .over_time(TimeRule::kConcat);
  op.def.strided_inputs = ~uint64_t{0};  // however many there are
}
