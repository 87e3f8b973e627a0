#include <algorithm>
#include <vector>

#include "op/op_def.h"
#include "op/operands.h"

namespace treadle {
namespace {

Result<Type> element_type(const InferContext& c, size_t i) {
  if (!c.has_input(i)) return Type();
  if (c.input(i).kind != Type::Kind::kSequence) {
    return error(Code::kInvalidArgument, "expected a sequence, found {}", c.input(i).to_string());
  }
  return *c.input(i).child;
}

// An index into a sequence of `size` elements; negative indices count from the end. With `behind_last`, `size` itself
// is valid.
Result<size_t> position_of(const Tensor& tensor, size_t size, bool behind_last) {
  if (tensor.element_count() != 1) {
    return error(Code::kInvalidArgument, "position has {} elements, expected 1", tensor.element_count());
  }
  const auto n = static_cast<int64_t>(size);
  const int64_t last = behind_last ? n : n - 1;
  const int64_t position = tensor.int64_at(0);
  if (position < -n || position > last) {
    return error(Code::kRuntime, "position {} is out of range, expected {} to {} for a sequence of {}", position, -n,
                 last, n);
  }
  return static_cast<size_t>(position < 0 ? position + n : position);
}

Status check_position(const InferContext& c, size_t i) {
  const Shape* shape = c.shape(i);
  if (!shape || !differ(element_count(*shape), Dim(1))) return {};
  return error(Code::kInvalidArgument, "position has shape {}, expected one element", to_string(*shape));
}

Status check_element(const Type& expected, const AnyValue& value) {
  if (!value.is_tensor() || !expected.is_tensor() || expected.element == value.tensor().type()) return {};
  return error(Code::kInvalidArgument, "tensor has elements of type {}, expected those of the sequence, {}",
               name(value.tensor().type()), expected.to_string());
}

// --- SequenceConstruct, SequenceEmpty

Status infer_construct(InferContext& c) {
  Type element = c.input(0);
  for (size_t i = 1; i < c.inputs.size(); ++i) {
    TREADLE_ASSIGN(element, unite(element, c.input(i)));
  }
  c.set_output(0, Type::sequence(std::move(element)));
  return {};
}

Status compute_construct(ComputeContext& c) {
  const Type element = Type::tensor(c.tensor(0).type());
  for (const AnyValue& value : c.inputs) TREADLE_TRY(check_element(element, value));
  c.outputs[0] = AnyValue(Sequence(element, {c.inputs.begin(), c.inputs.end()}));
  return {};
}

Result<Type> empty_element(const ir::Attributes& attributes) {
  const int64_t number = attributes.get_int("dtype", static_cast<int64_t>(ElementType::kFloat));
  const ElementType type = element_type_from_number(number);
  if (type == ElementType::kUndefined)
    return error(Code::kInvalidModel, "attribute dtype is {}, expected the number of an element type", number);
  return Type::tensor(type);
}

Status infer_empty(InferContext& c) {
  TREADLE_ASSIGN(Type element, empty_element(c.attributes()));
  c.set_output(0, Type::sequence(std::move(element)));
  return {};
}

Status compute_empty(ComputeContext& c) {
  TREADLE_ASSIGN(Type element, empty_element(c.attributes()));
  c.outputs[0] = AnyValue(Sequence(std::move(element)));
  return {};
}

// --- SequenceAt, SequenceLength

Status infer_at(InferContext& c) {
  TREADLE_TRY(check_position(c, 1));
  TREADLE_ASSIGN(Type element, element_type(c, 0));
  c.set_output(0, std::move(element));
  return {};
}

Status compute_at(ComputeContext& c) {
  const Sequence& sequence = c.inputs[0].sequence();
  TREADLE_ASSIGN(const size_t position, position_of(c.tensor(1), sequence.size(), false));
  c.outputs[0] = sequence[position];
  return {};
}

Status infer_length(InferContext& c) {
  TREADLE_TRY(element_type(c, 0).status());
  c.set_output(0, ElementType::kInt64, {});
  return {};
}

Status compute_length(ComputeContext& c) {
  const auto length = static_cast<int64_t>(c.inputs[0].sequence().size());
  c.outputs[0] = AnyValue(Tensor::scalar(ElementType::kInt64, length));
  return {};
}

// --- SequenceInsert, SequenceErase

Status infer_insert(InferContext& c) {
  TREADLE_TRY(check_position(c, 2));
  TREADLE_ASSIGN(Type element, element_type(c, 0));
  if (element.is_known() && c.has_input(1)) {
    TREADLE_ASSIGN(element, unite(element, c.input(1)));
  }
  c.set_output(0, Type::sequence(std::move(element)));
  return {};
}

// Insertion at the end takes amortised constant time: sequences share a prefix (type/any_value.h).
Status compute_insert(ComputeContext& c) {
  const Sequence& sequence = c.inputs[0].sequence();
  TREADLE_TRY(check_element(sequence.element_type(), c.inputs[1]));
  size_t position = sequence.size();
  if (c.has_input(2)) {
    TREADLE_ASSIGN(position, position_of(c.tensor(2), sequence.size(), true));
  }
  c.outputs[0] = AnyValue(sequence.inserted(position, c.inputs[1]));
  return {};
}

Status infer_erase(InferContext& c) {
  TREADLE_TRY(check_position(c, 1));
  TREADLE_TRY(element_type(c, 0).status());
  c.set_output(0, c.input(0));
  return {};
}

Status compute_erase(ComputeContext& c) {
  const Sequence& sequence = c.inputs[0].sequence();
  if (sequence.size() == 0)
    return error(Code::kRuntime, "the sequence is empty, expected at least one element to erase");
  size_t position = sequence.size() - 1;
  if (c.has_input(1)) {
    TREADLE_ASSIGN(position, position_of(c.tensor(1), sequence.size(), false));
  }
  c.outputs[0] = AnyValue(sequence.erased(position));
  return {};
}

}  // namespace
}  // namespace treadle

TREADLE_OP(SequenceConstruct, "") {
  op.since(11)
      .in("inputs", "T", Arity::kVariadic)
      .out("output_sequence", "S")
      .type("T", types::kAllTensors)
      .type("S", sequences_of(types::kAllTensors));
  op.infer(infer_construct).compute(compute_construct).no_axes("it works on sequences");
}

TREADLE_OP(SequenceEmpty, "") {
  op.since(11)
      .out("output", "S")
      .optional("dtype", ir::AttributeKind::kInt)
      .type("S", sequences_of(types::kAllTensors));
  op.infer(infer_empty).compute(compute_empty).no_axes("it works on sequences");
}

TREADLE_OP(SequenceAt, "") {
  op.since(11)
      .in("input_sequence", "S")
      .in("position", "I")
      .out("tensor", "T")
      .type("S", sequences_of(types::kAllTensors))
      .type("T", types::kAllTensors)
      .type("I", types::kIndices);
  op.infer(infer_at).compute(compute_at).can_fail().no_axes("it works on sequences");
}

TREADLE_OP(SequenceLength, "") {
  op.since(11)
      .in("input_sequence", "S")
      .out("length", "I")
      .type("S", sequences_of(types::kAllTensors))
      .type("I", types::kInt64s);
  op.infer(infer_length).compute(compute_length).no_axes("it works on sequences");
}

TREADLE_OP(SequenceInsert, "") {
  op.since(11)
      .in("input_sequence", "S")
      .in("tensor", "T")
      .in("position", "I", Arity::kOptional)
      .out("output_sequence", "S")
      .type("T", types::kAllTensors)
      .type("S", sequences_of(types::kAllTensors))
      .type("I", types::kIndices);
  op.infer(infer_insert).compute(compute_insert).updates().can_fail().no_axes("it works on sequences");
}

TREADLE_OP(SequenceErase, "") {
  op.since(11)
      .in("input_sequence", "S")
      .in("position", "I", Arity::kOptional)
      .out("output_sequence", "S")
      .type("S", sequences_of(types::kAllTensors))
      .type("I", types::kIndices);
  op.infer(infer_erase).compute(compute_erase).can_fail().no_axes("it works on sequences");
}
