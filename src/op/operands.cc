#include "op/operands.h"

#include <algorithm>
#include <cstring>

#include "kernels/costs.h"
#include "op/op_def.h"
#include "op/pieces.h"
#include "op/small_contents.h"

namespace treadle {

namespace {

IntList from_attribute(const ir::Attributes& attributes, const char* name) {
  const ir::Attribute* a = name ? attributes.find(name) : nullptr;
  if (!a) return {};
  return {IntList::State::kKnown, Ints(a->as_ints())};
}

}  // namespace

IntList int_list(const InferContext& c, const char* attribute, size_t input) {
  if (IntList list = from_attribute(c.attributes(), attribute); list.known()) return list;
  if (!c.has_input(input)) return {};
  if (const Tensor* t = c.value(input)) return {IntList::State::kKnown, t->to_int64s()};
  const auto dims = c.dims_value(input);
  if (!dims || !is_known(*dims)) return {IntList::State::kUnknown, {}};
  IntList list{IntList::State::kKnown, {}};
  for (const Dim& d : *dims) list.values.push_back(d.value());
  return list;
}

IntList int_list(const PrepareContext& c, const char* attribute, size_t input) {
  if (IntList list = from_attribute(c.attributes(), attribute); list.known()) return list;
  if (!c.has_input(input)) return {};
  return {IntList::State::kKnown, c.int64s(input)};
}

Result<Ints> normalize_axes(std::span<const int64_t> axes, int64_t rank, std::string_view what) {
  Ints out;
  for (int64_t axis : axes) {
    TREADLE_ASSIGN(const int64_t a, normalize_axis(axis, rank, what));
    if (std::find(out.begin(), out.end(), a) != out.end()) {
      return error(Code::kInvalidArgument, "{} name axis {} twice, expected each once", what, a);
    }
    out.push_back(a);
  }
  return out;
}

bool may_equal(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Dim& x, const Dim& y) { return !differ(x, y); });
}

Shape unknown_shape(size_t rank) {
  return Shape(rank, Dim::unknown());
}

Dim length_of(const InferContext& c, size_t i) {
  const Shape* shape = c.shape(i);
  if (!shape) return {};
  return element_count(*shape);
}

Operand operand_of(const ir::Value& value) {
  const Dims dims = known_dims(value.type.shape);
  return {value.type.element, dims, contiguous_strides(dims), value.is_constant() ? value.constant.raw() : nullptr};
}

Result<std::vector<Type>> infer_outputs(const ComputeContext& c) {
  std::vector<Type> types(c.inputs.size());
  std::vector<const Type*> type_pointers(c.inputs.size());
  std::vector<const Tensor*> values(c.inputs.size());
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (c.inputs[i].is_none()) continue;
    types[i] = c.inputs[i].type();
    type_pointers[i] = &types[i];
    if (c.inputs[i].is_tensor()) values[i] = &c.inputs[i].tensor();
  }
  std::vector<Type> outputs(c.outputs.size());
  InferContext infer{c.node, type_pointers, values, {}, outputs, {}, {}};
  TREADLE_TRY(c.node.op->infer(infer));
  return outputs;
}

Status infer_same_as_first(InferContext& c) {
  c.set_output(0, c.input(0));
  if (c.wants_symbols(0)) {
    if (auto values = small_contents(c, 0)) c.set_output_symbols(0, std::move(*values));
  }
  return {};
}

namespace {

struct PlainCopy {
  size_t bytes;
  uint32_t output;
};

uint32_t run_plain_copy(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const PlainCopy*>(state);
  return unless_stopped(copy_in_pieces(slots[operands[s.output]], slots[operands[0]], s.bytes));
}

}  // namespace

Status prepare_plain_copy(PrepareContext& c) {
  c.set_kernel(run_plain_copy,
               c.make_state<PlainCopy>(PlainCopy{c.inputs[0].byte_size(), static_cast<uint32_t>(c.inputs.size())}));
  return {};
}

Status compute_reshaped(ComputeContext& c) {
  TREADLE_ASSIGN(const std::vector<Type> types, infer_outputs(c));
  c.outputs[0] = AnyValue(c.tensor(0).reshaped(known_dims(types[0].shape)));
  return {};
}

namespace {

// The strings of all inputs, numbered from 1; 0 is the empty string.
class StringPositions {
 public:
  StringPositions() { strings_.push_back(nullptr); }

  Result<Tensor> number(const Tensor& strings) {
    TREADLE_ASSIGN(Tensor positions, Tensor::allocate(ElementType::kInt64, strings.dims()));
    auto* numbers = positions.mutable_data<int64_t>();
    const auto number = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        numbers[i] = static_cast<int64_t>(strings_.size());
        strings_.push_back(strings.data<String>() + i);
      }
    };
    if (!in_pieces(strings.element_count(), costs::kNumberedTextNs, number)) return stopped();
    return positions;
  }

  Result<Tensor> look_up(const Tensor& positions) const {
    TREADLE_ASSIGN(Tensor strings, Tensor::allocate(ElementType::kString, positions.dims()));
    auto* texts = strings.mutable_data<String>();
    const auto* numbers = positions.data<int64_t>();
    StopPoll stop;
    for (int64_t i = 0; i < positions.element_count(); ++i) {
      const String* s = strings_[static_cast<size_t>(numbers[i])];
      if (s) texts[i] = *s;
      if (stop.after(s ? text_ns(*s) : 0)) return stopped();
    }
    return strings;
  }

 private:
  CountedVector<const String*> strings_;
};

Operand operand_of(const Tensor& tensor) {
  return {tensor.type(), tensor.dims(), contiguous_strides(tensor.dims()), tensor.raw()};
}

Status prepare_and_run(const ir::NodeInfo& node, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  std::vector<Operand> in(inputs.size()), out(outputs.size());
  std::vector<void*> slots;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined()) in[i] = operand_of(inputs[i]);
    slots.push_back(const_cast<void*>(inputs[i].raw()));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    out[i] = operand_of(outputs[i]);
    slots.push_back(outputs[i].mutable_raw());
  }
  StateArena arena;
  PackCache packs;
  PrepareContext prepare{node, in, out, arena, packs, {}};
  TREADLE_TRY(node.op->prepare(prepare));
  if (was_stopped()) return stopped();  // the state may be half made
  TREADLE_ASSIGN(Tensor scratch, Tensor::allocate(ElementType::kUint8, {static_cast<int64_t>(prepare.scratch_bytes)}));
  slots.push_back(scratch.mutable_raw());
  slots.push_back(nullptr);  // no kept memory
  std::vector<uint32_t> operands(slots.size());
  for (size_t i = 0; i < operands.size(); ++i) operands[i] = static_cast<uint32_t>(i);
  return kernel_status(prepare.kernel.run(prepare.kernel.state, slots.data(), operands.data()));
}

}  // namespace

Status compute_by_position(ComputeContext& c) {
  TREADLE_ASSIGN(const std::vector<Type> types, infer_outputs(c));
  StringPositions positions;
  std::vector<Tensor> inputs(c.inputs.size()), outputs(c.outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!c.has_input(i)) continue;
    inputs[i] = c.tensor(i);
    if (!is_string(inputs[i].type())) continue;
    TREADLE_ASSIGN(inputs[i], positions.number(inputs[i]));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ElementType type = is_string(types[i].element) ? ElementType::kInt64 : types[i].element;
    TREADLE_ASSIGN(outputs[i], Tensor::allocate(type, known_dims(types[i].shape)));
  }
  TREADLE_TRY(prepare_and_run(c.node, inputs, outputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (is_string(types[i].element)) {
      TREADLE_ASSIGN(outputs[i], positions.look_up(outputs[i]));
    }
    c.outputs[i] = AnyValue(std::move(outputs[i]));
  }
  return {};
}

}  // namespace treadle
