#include "op/axis_rules.h"
#include "op/dynamic_kernel.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/tensor/copy.h"

namespace treadle {
namespace {

using tensor_ops::set_copy_kernel;

// --- Transpose

Result<Ints> permutation(const ir::Attributes& attributes, int64_t rank) {
  const ir::Attribute* perm = attributes.find("perm");
  if (!perm) {
    Ints reversed;
    for (int64_t i = rank; i-- > 0;) reversed.push_back(i);
    return reversed;
  }
  const auto given = perm->as_ints();
  if (static_cast<int64_t>(given.size()) != rank) {
    return error(Code::kInvalidArgument, "perm has {} axes, expected {}", given.size(), rank);
  }
  return normalize_axes(given, rank, "perm");
}

Status infer_transpose(InferContext& c) {
  const Shape* shape = c.shape(0);
  if (!shape) {
    if (const ir::Attribute* perm = c.attributes().find("perm")) {
      c.set_output(0, c.element(0), unknown_shape(perm->as_ints().size()));
    } else {
      c.set_output(0, c.element(0));
    }
    return {};
  }
  TREADLE_ASSIGN(const Ints perm, permutation(c.attributes(), static_cast<int64_t>(shape->size())));
  Shape out;
  for (int64_t axis : perm) out.push_back((*shape)[static_cast<size_t>(axis)]);
  c.set_output(0, c.element(0), std::move(out));
  if (c.wants_symbols(0) && shape->size() <= 1) {
    if (auto values = c.dims_value(0)) c.set_output_symbols(0, std::move(*values));
  }
  return {};
}

Status prepare_transpose(PrepareContext& c) {
  const Operand& in = c.inputs[0];
  TREADLE_ASSIGN(const Ints perm, permutation(c.attributes(), in.rank()));
  Dims strides;
  for (int64_t axis : perm) strides.push_back(in.strides[static_cast<size_t>(axis)]);
  return set_copy_kernel(c, c.outputs[0].dims, strides, c.outputs[0].strides);
}

struct DynamicTranspose {
  Ints perm;  // empty: all axes the other way round
  size_t width = 0;
};

uint32_t run_dynamic_transpose(const DynamicTranspose& s, DynamicCall& call) {
  const DynamicOperand& in = call.inputs[0];
  const size_t rank = in.dims->size();
  if (!s.perm.empty() && s.perm.size() != rank) return kNotDynamic;
  const Dims own = contiguous_strides(*in.dims);
  Dims dims, strides;
  for (size_t d = 0; d < rank; ++d) {
    const size_t axis = s.perm.empty() ? rank - 1 - d : static_cast<size_t>(s.perm[d]);
    dims.push_back(in.size(axis));
    strides.push_back(own[axis]);
  }
  void* to = call.make(0, dims);
  if (!to) return kNotDynamic;
  copy_strided(s.width, dims, in.data, strides, to, contiguous_strides(dims));
  return 0;
}

DynamicKernel dynamic_transpose(const DynamicContext& c) {
  DynamicTranspose made{{}, byte_width(c.element(0))};
  if (const ir::Attribute* perm = c.attributes().find("perm")) {
    auto axes = normalize_axes(perm->as_ints(), static_cast<int64_t>(perm->as_ints().size()), "perm");
    if (!axes.ok()) return {};
    made.perm = std::move(axes).value();
  }
  return dynamic_kernel<DynamicTranspose, run_dynamic_transpose>(c, std::move(made));
}

// --- DepthToSpace, SpaceToDepth
//
// Both are transposes of a six-dimensional view. Between depth [n, d, h, w] and space [n, c, H, W] with block size b:
// d is [b, b, c] (mode DCR) or [c, b, b] (CRD), H is [h, b] and W is [w, b].

Result<int64_t> block_size(const ir::Attributes& attributes) {
  const int64_t b = attributes.get_int("blocksize");
  constexpr int64_t kMost = 1 << 20;  // its square must not overflow
  if (b < 1 || b > kMost) return error(Code::kInvalidArgument, "blocksize is {}, expected 1 to {}", b, kMost);
  return b;
}

Result<bool> is_depth_first(const ir::Attributes& attributes) {
  const std::string_view mode = attributes.get_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return error(Code::kInvalidArgument, "mode is {}, expected DCR or CRD", mode);
  return mode == "DCR";
}

Result<Dim> divided(const Dim& size, int64_t by, const char* what) {
  if (size.is_known() && size.value() % by != 0) {
    return error(Code::kInvalidArgument, "{} is {}, expected a multiple of {}", what, size.value(), by);
  }
  return floor_div(size, by);
}

Status check_images(const Shape& shape) {
  if (shape.size() == 4) return {};
  return error(Code::kInvalidArgument, "expected an input of rank 4, found shape {}", to_string(shape));
}

Status infer_depth_to_space(InferContext& c) {
  TREADLE_ASSIGN(const int64_t b, block_size(c.attributes()));
  TREADLE_TRY(is_depth_first(c.attributes()).status());
  const Shape* in = c.shape(0);
  if (!in) return c.set_output(0, c.element(0), unknown_shape(4)), Status();
  TREADLE_TRY(check_images(*in));
  TREADLE_ASSIGN(Dim channels, divided((*in)[1], b * b, "the number of channels of input"));
  c.set_output(0, c.element(0), {(*in)[0], std::move(channels), (*in)[2] * b, (*in)[3] * b});
  return {};
}

Status infer_space_to_depth(InferContext& c) {
  TREADLE_ASSIGN(const int64_t b, block_size(c.attributes()));
  TREADLE_TRY(is_depth_first(c.attributes()).status());
  const Shape* in = c.shape(0);
  if (!in) return c.set_output(0, c.element(0), unknown_shape(4)), Status();
  TREADLE_TRY(check_images(*in));
  TREADLE_ASSIGN(Dim height, divided((*in)[2], b, "the height of input"));
  TREADLE_ASSIGN(Dim width, divided((*in)[3], b, "the width of input"));
  c.set_output(0, c.element(0), {(*in)[0], (*in)[1] * (b * b), std::move(height), std::move(width)});
  return {};
}

// Walks [n, c, h, by, w, bx] with the strides of the space side and of the depth side.
struct BlockView {
  Dims dims, space, depth;
};

Result<BlockView> block_view(const ir::Attributes& attributes, const Operand& space) {
  TREADLE_ASSIGN(const int64_t b, block_size(attributes));
  TREADLE_ASSIGN(const bool depth_first, is_depth_first(attributes));
  const int64_t n = space.dims[0], c = space.dims[1], h = space.dims[2] / b, w = space.dims[3] / b;
  const int64_t plane = h * w;
  BlockView view;
  view.dims = {n, c, h, b, w, b};
  view.space = {c * plane * b * b, plane * b * b, w * b * b, w * b, b, 1};
  const int64_t channel = depth_first ? plane : b * b * plane;
  const int64_t block_column = depth_first ? c * plane : plane;
  view.depth = {c * b * b * plane, channel, w, block_column * b, 1, block_column};
  return view;
}

Status prepare_depth_to_space(PrepareContext& c) {
  TREADLE_ASSIGN(const BlockView view, block_view(c.attributes(), c.outputs[0]));
  return set_copy_kernel(c, view.dims, view.depth, view.space);
}

Status prepare_space_to_depth(PrepareContext& c) {
  TREADLE_ASSIGN(const BlockView view, block_view(c.attributes(), c.inputs[0]));
  return set_copy_kernel(c, view.dims, view.space, view.depth);
}

Status permuted_axes(AxisContext& c) {
  const auto perm = c.attributes().get_ints("perm");
  if (perm.empty()) return c.give(0, c.rank(0) - 1 - c.in(0));
  return c.give(0, std::find(perm.begin(), perm.end(), c.in(0)) - perm.begin());
}

Status widen_permutation(WidenContext& c) {
  const auto given = c.attributes().get_ints("perm");
  std::vector<int64_t> perm{0};
  for (int64_t i = 0; i < c.rank(0); ++i) {
    perm.push_back(given.empty() ? c.rank(0) - i : given[static_cast<size_t>(i)] + 1);
  }
  c.set(ir::Attribute::of("perm", std::move(perm)));
  return {};
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Transpose, "") {
  op.since(1)
      .in("data", "T")
      .out("transposed", "T")
      .optional("perm", ir::AttributeKind::kInts)
      .type("T", types::kAllTensors);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.since(21).type("T", types::kAllTensorsIr10);
  op.since(23).type("T", types::kAllTensorsIr11);
  op.since(24).type("T", types::kAllTensorsIr12);
  op.since(25).type("T", types::kAllTensorsIr13);
  op.infer(infer_transpose)
      .prepare(prepare_transpose)
      .compute(compute_by_position)
      .moves_elements()
      .dynamic(dynamic_transpose)
      .strided_inputs({0})
      .axes(permuted_axes, widen_permutation);
}

TREADLE_OP(DepthToSpace, "") {
  op.since(1)
      .in("input", "T")
      .out("output", "T")
      .required("blocksize", ir::AttributeKind::kInt)
      .type("T", types::kAllTensors);
  op.since(11).attr("mode", "DCR");
  op.since(13).type("T", types::kAllTensorsIr4);
  op.since(28);
  op.infer(infer_depth_to_space)
      .prepare(prepare_depth_to_space)
      .compute(compute_by_position)
      .moves_elements()
      .axes(axes::entries);
}

TREADLE_OP(SpaceToDepth, "") {
  op.since(1)
      .in("input", "T")
      .out("output", "T")
      .required("blocksize", ir::AttributeKind::kInt)
      .type("T", types::kAllTensors);
  op.since(13).type("T", types::kAllTensorsIr4);
  op.since(28).attr("mode", "DCR");
  op.infer(infer_space_to_depth)
      .prepare(prepare_space_to_depth)
      .compute(compute_by_position)
      .moves_elements()
      .axes(axes::entries);
}
