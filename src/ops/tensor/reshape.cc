// Operators that give the same elements other sizes: their outputs are aliases of input 0.

#include <algorithm>

#include "op/axis_rules.h"
#include "op/dynamic_kernel.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/rank.h"
#include "op/size_rules.h"
#include "op/sizes.h"
#include "op/small_contents.h"

namespace treadle {
namespace {

void forward_symbols(InferContext& c, const Shape& output) {
  if (!c.wants_symbols(0) || output.size() > 1) return;
  if (auto values = small_contents(c, 0)) c.set_output_symbols(0, std::move(*values));
}

Status infer_reshape(InferContext& c) {
  std::optional<Shape> target;
  if (c.version() < 5) {
    const auto shape = c.attributes().get_ints("shape");
    target = Shape(shape.begin(), shape.end());
  } else {
    target = c.dims_value(1);
    if (!target) {
      const Dim length = dimensions_listed(c, 1);
      if (!length.is_known()) return c.set_output(0, c.element(0)), Status();
      target = unknown_shape(static_cast<size_t>(length.value()));
    }
  }
  const bool allow_zero = c.attributes().get_int("allowzero", 0) != 0;
  DimSizes sizes;
  if (!size_rules::reshape(sizes, c.shape(0), allow_zero, *target)) return sizes.status();
  forward_symbols(c, *target);
  c.set_output(0, c.element(0), std::move(*target));
  return {};
}

Status infer_flatten(InferContext& c) {
  const Shape* shape = c.shape(0);
  if (!shape) return c.set_output(0, c.element(0), unknown_shape(2)), Status();
  const auto rank = static_cast<int64_t>(shape->size());
  int64_t axis = c.attributes().get_int("axis", 1);
  if (axis < -rank || axis > rank || (axis < 0 && c.version() < 11)) {
    return error(Code::kInvalidArgument, "axis is {}, expected {} to {} for rank {}", axis,
                 c.version() < 11 ? 0 : -rank, rank, rank);
  }
  if (axis < 0) axis += rank;
  Dim rows = 1, columns = 1;
  for (int64_t i = 0; i < rank; ++i) {
    Dim& side = i < axis ? rows : columns;
    side = side * (*shape)[static_cast<size_t>(i)];
  }
  c.set_output(0, c.element(0), {rows, columns});
  return {};
}

bool names(const Ints& axes, size_t d) {
  return std::ranges::find(axes, static_cast<int64_t>(d)) != axes.end();
}

Status infer_squeeze(InferContext& c) {
  const Shape* shape = c.shape(0);
  IntList axes = int_list(c, "axes", 1);
  if (!shape) return c.set_output(0, c.element(0)), Status();
  if (axes.state == IntList::State::kUnknown) {
    const Dim count = dimensions_listed(c, 1);
    if (!count.is_known() || count.value() > static_cast<int64_t>(shape->size())) {
      return c.set_output(0, c.element(0)), Status();
    }
    c.set_output(0, c.element(0), unknown_shape(shape->size() - static_cast<size_t>(count.value())));
    return {};
  }
  if (axes.absent()) {
    for (size_t i = 0; i < shape->size(); ++i) {
      if (!(*shape)[i].is_known()) return c.set_output(0, c.element(0)), Status();
      if ((*shape)[i].value() == 1) axes.values.push_back(static_cast<int64_t>(i));
    }
  }
  TREADLE_ASSIGN(const Ints which, normalize_axes(axes.values, static_cast<int64_t>(shape->size())));
  DimSizes sizes;
  Shape out;
  if (!size_rules::squeeze(sizes, *shape, [&](size_t d) { return names(which, d); }, out)) return sizes.status();
  forward_symbols(c, out);
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

Status infer_unsqueeze(InferContext& c) {
  const Shape* shape = c.shape(0);
  const IntList axes = int_list(c, "axes", 1);
  if (!shape) return c.set_output(0, c.element(0)), Status();
  if (!axes.known()) {
    const Dim count = dimensions_listed(c, 1);
    if (!count.is_known()) return c.set_output(0, c.element(0)), Status();
    c.set_output(0, c.element(0), unknown_shape(shape->size() + static_cast<size_t>(count.value())));
    return {};
  }
  const size_t rank = shape->size() + axes.values.size();
  TREADLE_ASSIGN(const Ints which, normalize_axes(axes.values, static_cast<int64_t>(rank)));
  DimSizes sizes;
  Shape out;
  size_rules::unsqueeze(sizes, *shape, which.size(), [&](size_t d) { return names(which, d); }, out);
  forward_symbols(c, out);
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

// --- of any sizes

struct DynamicReshape {
  bool allow_zero = false;
};

uint32_t run_dynamic_reshape(const DynamicReshape& s, DynamicCall& call) {
  const DynamicOperand &in = call.inputs[0], &shape = call.inputs[1];
  if (shape.rank() != 1) return kNotDynamic;
  const auto* target = static_cast<const int64_t*>(shape.data);
  Dims dims(target, target + shape.count);
  NumberSizes sizes;
  if (!size_rules::reshape(sizes, in.dims, s.allow_zero, dims)) return kNotDynamic;
  return call.share(0, 0, dims) ? 0 : kNotDynamic;
}

DynamicKernel dynamic_reshape(const DynamicContext& c) {
  if (c.node.version->since < 5) return {};
  const DynamicReshape reshape{c.attributes().get_int("allowzero", 0) != 0};
  return dynamic_kernel<DynamicReshape, run_dynamic_reshape>(c, reshape);
}

// Axes as the node has them: an attribute, or the contents of input 1.
struct DynamicAxes {
  Ints given;

  explicit DynamicAxes(const DynamicContext& c) {
    const auto axes = c.attributes().get_ints("axes");
    given.assign(axes.begin(), axes.end());
  }
  // As bits; nullopt where one is not among `rank`, or comes twice.
  std::optional<uint64_t> bits(const DynamicCall& call, int64_t rank) const {
    const bool listed = call.has(1);
    if (listed && call.inputs[1].rank() != 1) return std::nullopt;
    const int64_t count = listed ? call.inputs[1].count : static_cast<int64_t>(given.size());
    uint64_t named = 0;
    for (int64_t i = 0; i < count; ++i) {
      int64_t axis = listed ? static_cast<const int64_t*>(call.inputs[1].data)[i] : given[static_cast<size_t>(i)];
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= std::min<int64_t>(rank, 64) || named >> axis & 1) return std::nullopt;
      named |= uint64_t{1} << axis;
    }
    return named;
  }
  bool any(const DynamicCall& call) const { return call.has(1) || !given.empty(); }
  int64_t count(const DynamicCall& call) const {
    return call.has(1) ? call.inputs[1].count : static_cast<int64_t>(given.size());
  }
};

uint32_t run_dynamic_squeeze(const DynamicAxes& s, DynamicCall& call) {
  const DynamicOperand& in = call.inputs[0];
  const auto named = s.bits(call, in.rank());
  if (!named || in.rank() > 64) return kNotDynamic;
  const bool any = s.any(call);
  const auto goes = [&](size_t d) { return any ? (*named >> d & 1) != 0 : in.size(d) == 1; };
  NumberSizes sizes;
  Dims dims;
  if (!size_rules::squeeze(sizes, *in.dims, goes, dims)) return kNotDynamic;
  return call.share(0, 0, dims) ? 0 : kNotDynamic;
}

uint32_t run_dynamic_unsqueeze(const DynamicAxes& s, DynamicCall& call) {
  const DynamicOperand& in = call.inputs[0];
  const int64_t more = s.count(call), rank = in.rank() + more;
  const auto named = s.bits(call, rank);
  if (!named || rank > 64) return kNotDynamic;
  NumberSizes sizes;
  Dims dims;
  size_rules::unsqueeze(sizes, *in.dims, static_cast<size_t>(more), [&](size_t d) { return *named >> d & 1; }, dims);
  return call.share(0, 0, dims) ? 0 : kNotDynamic;
}

template <auto kRun>
DynamicKernel dynamic_axes(const DynamicContext& c) {
  return dynamic_kernel<DynamicAxes, kRun>(c, c);
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Reshape, "") {
  op.since(1)
      .in("data", "T")
      .out("reshaped", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .optional("shape", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(5)
      .in("shape", "tensor(int64)")
      .drop_attr("consumed_inputs")
      .drop_attr("shape")
      .type("T", types::kAllTensors);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.since(14).attr("allowzero", 0);
  op.since(19).type("T", types::kAllTensorsIr9);
  op.since(21).type("T", types::kAllTensorsIr10);
  op.since(23).type("T", types::kAllTensorsIr11);
  op.since(24).type("T", types::kAllTensorsIr12);
  op.since(25).type("T", types::kAllTensorsIr13);
  op.infer(infer_reshape)
      .prepare(prepare_plain_copy)
      .compute(compute_reshaped)
      .alias(0)
      .dynamic(dynamic_reshape)
      .sizes(SizeRule::kReshape)
      .shape_inputs({1})
      .axes(axes::reshaped)
      .over_time(TimeRule::kReshape);
}

TREADLE_OP(Flatten, "") {
  op.since(1).in("input", "T").out("output", "T").attr("axis", 1).type("T", types::kFloats);
  op.since(9).type("T", types::kAllTensors);
  op.since(11);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.since(21).type("T", types::kAllTensorsIr10);
  op.since(23).type("T", types::kAllTensorsIr11);
  op.since(24).type("T", types::kAllTensorsIr12);
  op.since(25).type("T", types::kAllTensorsIr13);
  op.infer(infer_flatten).prepare(prepare_plain_copy).compute(compute_reshaped).alias(0).axes(axes::reshaped);
}

TREADLE_OP(Squeeze, "") {
  op.since(1)
      .in("data", "T")
      .out("squeezed", "T")
      .optional("axes", ir::AttributeKind::kInts)
      .type("T", types::kAllTensors);
  op.since(11);
  op.since(13).in("axes", "tensor(int64)", Arity::kOptional).drop_attr("axes").type("T", types::kAllTensorsIr4);
  op.since(21).type("T", types::kAllTensorsIr10);
  op.since(23).type("T", types::kAllTensorsIr11);
  op.since(24).type("T", types::kAllTensorsIr12);
  op.since(25).type("T", types::kAllTensorsIr13);
  op.infer(infer_squeeze)
      .prepare(prepare_plain_copy)
      .compute(compute_reshaped)
      .alias(0)
      .dynamic(dynamic_axes<run_dynamic_squeeze>)
      .sizes(SizeRule::kSqueeze)
      .shape_inputs({1})
      .axes(axes::reshaped)
      .over_time(TimeRule::kSqueeze);
}

TREADLE_OP(Unsqueeze, "") {
  op.since(1)
      .in("data", "T")
      .out("expanded", "T")
      .required("axes", ir::AttributeKind::kInts)
      .type("T", types::kAllTensors);
  op.since(11);
  op.since(13).in("axes", "tensor(int64)").drop_attr("axes").type("T", types::kAllTensorsIr4);
  op.since(21).type("T", types::kAllTensorsIr10);
  op.since(23).type("T", types::kAllTensorsIr11);
  op.since(24).type("T", types::kAllTensorsIr12);
  op.since(25).type("T", types::kAllTensorsIr13);
  op.infer(infer_unsqueeze)
      .prepare(prepare_plain_copy)
      .compute(compute_reshaped)
      .alias(0)
      .dynamic(dynamic_axes<run_dynamic_unsqueeze>)
      .sizes(SizeRule::kUnsqueeze)
      .shape_inputs({1})
      .axes(axes::reshaped);
}
