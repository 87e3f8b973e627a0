#include <cstring>

#include "kernels/move.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/rank.h"
#include "op/small_contents.h"

namespace treadle {
namespace {

constexpr int64_t kMaxSymbols = 64;  // contents of longer tensors are of no use to shapes

Result<Shape> shape_from_input(InferContext& c, bool& has_shape) {
  has_shape = true;
  if (auto dims = c.dims_value(0)) {
    for (Dim& d : *dims) {
      if (d.is_known() && d.value() < 0) {
        return error(Code::kInvalidArgument, "shape {} has a negative size, expected sizes of at least 0",
                     to_string(*dims));
      }
    }
    return std::move(*dims);
  }
  const Dim length = dimensions_listed(c, 0);
  if (length.is_known()) return unknown_shape(static_cast<size_t>(length.value()));
  has_shape = false;
  return Shape();
}

Status infer_constant_of_shape(InferContext& c) {
  const ir::Attribute* value = c.attributes().find("value");
  const ElementType type = value ? value->as_tensor().type() : ElementType::kFloat;
  if (value && value->as_tensor().element_count() != 1) {
    return error(Code::kInvalidModel, "attribute value has {} elements, expected 1",
                 value->as_tensor().element_count());
  }
  if (type == ElementType::kString) {
    return error(Code::kInvalidModel, "attribute value is of type string, expected a numeric type or bool");
  }
  if (c.value(0) && c.element(0) != ElementType::kInt64) {
    return error(Code::kInvalidModel, "the shape is of type {}, expected int64", name(c.element(0)));
  }
  bool has_shape = false;
  TREADLE_ASSIGN(Shape shape, shape_from_input(c, has_shape));
  if (!has_shape) return c.set_output(0, type), Status();
  if (c.wants_symbols(0) && value && is_integer(type) && shape.size() <= 1) {
    const int64_t count = shape.empty() ? 1 : shape[0].value_or(kMaxSymbols + 1);
    const auto fill = dims_of(value->as_tensor());
    if (count <= kMaxSymbols && fill && fill->size() == 1) {
      c.set_output_symbols(0, Shape(static_cast<size_t>(count), (*fill)[0]));
    }
  }
  c.set_output(0, type, std::move(shape));
  return {};
}

struct Fill {
  size_t width = 0;
  size_t count = 0;
  alignas(16) std::byte value[16] = {};
};

uint32_t run_fill(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const Fill*>(state);
  kernels::fill(s.width, s.value, slots[operands[1]], s.count);
  return 0;
}

Status prepare_constant_of_shape(PrepareContext& c) {
  auto* fill = c.make_state<Fill>();
  fill->width = byte_width(c.outputs[0].type);
  fill->count = static_cast<size_t>(c.outputs[0].element_count());
  if (const ir::Attribute* value = c.attributes().find("value")) {
    std::memcpy(fill->value, value->as_tensor().raw(), fill->width);
  }
  c.set_kernel(run_fill, fill);
  return {};
}

}  // namespace
}  // namespace treadle

TREADLE_OP(ConstantOfShape, "") {
  op.since(9)
      .in("input", "T1")
      .out("output", "T2")
      .optional("value", ir::AttributeKind::kTensor)
      .type("T1", types::kInt64s)
      .type("T2", types::kNumericBool);
  op.since(20).type("T2", types::kFillableIr9);
  op.since(21).type("T2", types::kFillableIr10);
  op.since(23).type("T2", types::kFillableIr11);
  op.since(24).type("T2", types::kFillableIr12);
  op.since(25).type("T2", types::kFillableIr13);
  op.infer(infer_constant_of_shape)
      .prepare(prepare_constant_of_shape)
      .shape_inputs({0})
      .no_axes("its operand is a shape")
      .over_time(TimeRule::kFill);
}
