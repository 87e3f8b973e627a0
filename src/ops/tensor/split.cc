#include <algorithm>
#include <vector>

#include "kernels/move.h"
#include "op/axis_rules.h"
#include "op/dynamic_kernel.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/size_rules.h"
#include "op/sizes.h"
#include "ops/tensor/copy.h"

namespace treadle {
namespace {

using tensor_ops::CopiedPart;

// Sizes of `count` parts that are as long as each other; from version 18 on the last ones may be smaller, before that a
// size that is no multiple is an error.
template <class S>
bool equal_parts(S& s, const typename S::Size& size, int64_t count, int version, typename S::List& parts) {
  if (version >= 18) {
    parts = size_rules::split_unevenly(s, size, count);
    return true;
  }
  typename S::Size part = size;
  if (!size_rules::split_evenly(s, size, count, part)) return false;
  parts.resize(static_cast<size_t>(count), part);
  return true;
}

Result<Shape> parts_of(InferContext& c, const Dim& size) {
  DimSizes sizes;
  const size_t outputs = c.outputs.size();
  const IntList given = int_list(c, "split", 1);
  if (given.known()) {
    if (!size_rules::split_as_listed(sizes, size, given.values, outputs)) return sizes.status();
    return Shape(given.values.begin(), given.values.end());
  }
  if (!given.absent()) {
    if (auto dims = c.dims_value(1); dims && dims->size() == outputs) return std::move(*dims);
    return unknown_shape(outputs);
  }
  const int64_t count = c.attributes().get_int("num_outputs", static_cast<int64_t>(outputs));
  if (count != static_cast<int64_t>(outputs)) {
    return error(Code::kInvalidModel, "attribute num_outputs is {}, expected the number of outputs, {}", count,
                 outputs);
  }
  if (count < 1) return error(Code::kInvalidModel, "the node has no outputs, expected at least one");
  Shape parts;
  if (!equal_parts(sizes, size, count, c.version(), parts)) return sizes.status();
  return parts;
}

Status infer_split(InferContext& c) {
  const Shape* shape = c.shape(0);
  if (!shape) {
    for (size_t i = 0; i < c.outputs.size(); ++i) c.set_output(i, c.element(0));
    return {};
  }
  TREADLE_ASSIGN(const int64_t axis,
                 normalize_axis(c.attributes().get_int("axis", 0), static_cast<int64_t>(shape->size())));
  TREADLE_ASSIGN(const Shape parts, parts_of(c, (*shape)[static_cast<size_t>(axis)]));
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    Shape out = *shape;
    out[static_cast<size_t>(axis)] = parts[i];
    c.set_output(i, c.element(0), std::move(out));
  }
  if (shape->size() != 1 || c.output_symbols.empty() || !is_known(parts)) return {};
  if (const auto values = c.dims_value(0)) {
    const Dim* next = values->begin();
    for (size_t i = 0; i < parts.size(); next += parts[i++].value()) {
      if (c.wants_symbols(i)) c.set_output_symbols(i, Shape(next, next + parts[i].value()));
    }
  }
  return {};
}

// Sizes along the axis, read from the outputs where they are there, else from the list that gave them.
Status prepare_split(PrepareContext& c) {
  const Operand& in = c.inputs[0];
  TREADLE_ASSIGN(const int64_t signed_axis, normalize_axis(c.attributes().get_int("axis", 0), in.rank()));
  const auto axis = static_cast<size_t>(signed_axis);
  const IntList given = int_list(c, "split", 1);
  Dims parts(given.values.begin(), given.values.end());
  DimSizes sizes;
  if (given.absent()) {
    Shape equal;
    if (!equal_parts(sizes, in.dims[axis], static_cast<int64_t>(c.outputs.size()), c.version(), equal)) {
      return sizes.status();
    }
    parts = known_dims(equal);
  }
  std::vector<CopiedPart> copied;
  int64_t offset = 0;
  for (size_t i = 0; i < c.outputs.size(); offset += parts[i++]) {
    const Operand& out = c.outputs[i];
    if (out.present()) copied.push_back({0, i, out.dims, in.strides, out.strides, offset * in.strides[axis], 0});
  }
  return tensor_ops::set_copies_kernel(c, copied);
}

struct DynamicSplit {
  int64_t axis = 0;
  int version = 1;
  Dims sizes;  // of versions that have them as an attribute
  bool given = false;
  size_t width = 0;
  size_t outputs = 0;
};

uint32_t run_dynamic_split(const DynamicSplit& s, DynamicCall& call) {
  const DynamicOperand& in = call.inputs[0];
  const auto axis = in.axis(s.axis);
  if (!axis) return kNotDynamic;
  const size_t at = *axis;
  NumberSizes sizes;
  Dims parts = s.sizes;
  if (call.has(1)) {
    if (call.inputs[1].rank() != 1) return kNotDynamic;
    const auto* listed = static_cast<const int64_t*>(call.inputs[1].data);
    parts.assign(listed, listed + call.inputs[1].count);
  } else if (!s.given && !equal_parts(sizes, in.size(at), static_cast<int64_t>(s.outputs), s.version, parts)) {
    return kNotDynamic;
  }
  if (!size_rules::split_as_listed(sizes, in.size(at), parts, s.outputs)) return kNotDynamic;
  const int64_t block = contiguous_strides(*in.dims)[at] * static_cast<int64_t>(s.width);  // bytes
  const int64_t row = block * in.size(at), outer = in.count > 0 ? in.count * static_cast<int64_t>(s.width) / row : 0;
  const auto* from = static_cast<const std::byte*>(in.data);
  for (size_t i = 0; i < s.outputs; ++i) {
    Dims dims = *in.dims;
    dims[at] = parts[i];
    void* to = call.make(i, dims);
    if (!to) return kNotDynamic;
    const int64_t bytes = parts[i] * block;
    if (outer == 0 || bytes == 0) continue;
    kernels::copy_blocks(from, row, to, bytes, static_cast<size_t>(bytes), static_cast<size_t>(outer));
    from += bytes;
  }
  return 0;
}

DynamicKernel dynamic_split(const DynamicContext& c) {
  // Version 1 lists sizes in the type of the data.
  const bool listed = c.node.inputs.size() > 1 && c.node.inputs[1];
  if (listed && c.element(1) != ElementType::kInt64) return {};
  DynamicSplit made{c.attributes().get_int("axis", 0), c.node.version->since,    {},
                    c.attributes().has("split"),       byte_width(c.element(0)), c.node.outputs.size()};
  const auto sizes = c.attributes().get_ints("split");
  made.sizes.assign(sizes.begin(), sizes.end());
  return dynamic_kernel<DynamicSplit, run_dynamic_split>(c, std::move(made));
}

Status split_axes(AxisContext& c) {
  TREADLE_TRY(axes::only_first(c));
  if (c.axis(c.rank(0), 0) == c.in(0)) return looks_along("it splits it");
  return c.give_all(c.in(0));
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Split, "") {
  op.since(1)
      .in("input", "T")
      .in("split", "T", Arity::kOptional)
      .out("outputs...", "T", Arity::kVariadic)
      .optional("axis", ir::AttributeKind::kInt)
      .optional("split", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(2)
      .drop_in("split")
      .no_outputs()
      .out("outputs", "T", Arity::kVariadic)
      .attr("axis", 0)
      .type("T", types::kAllTensors);
  op.since(11);
  op.since(13).in("split", "tensor(int64)", Arity::kOptional).drop_attr("split").type("T", types::kAllTensorsIr4);
  op.since(18).optional("num_outputs", ir::AttributeKind::kInt);
  op.infer(infer_split)
      .prepare(prepare_split)
      .compute(compute_by_position)
      .moves_elements()
      .shape_inputs({1})
      .strided_inputs({0})
      .dynamic(dynamic_split)
      .sizes(SizeRule::kSplit)
      .axes(split_axes, axes::shift_axis);
}
