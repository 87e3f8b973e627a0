#include "session/signature.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "base/name_map.h"

namespace treadle::session {

namespace {

bool fits(const Dims& expected, const Dims& found) {
  if (expected.size() != found.size()) return false;
  for (size_t d = 0; d < expected.size(); ++d) {
    if (expected[d] >= 0 && expected[d] != found[d]) return false;
  }
  return true;
}

// Two sizes with the same name in the model are different symbols: nothing checks that they are equal.
Shape shape_of(const Dims& dims, const IoInfo& input) {
  Shape shape;
  for (size_t d = 0; d < dims.size(); ++d) {
    shape.push_back(dims[d] >= 0 ? Dim(dims[d]) : Dim::symbol(input.name + "." + std::to_string(d)));
  }
  return shape;
}

uint64_t number_of(std::span<const int64_t> sizes, uint64_t seed) {
  return hash_name({reinterpret_cast<const char*>(sizes.data()), sizes.size_bytes()}, seed);
}

plan::InputSpec knowledge_of_other(const InputSignature& signature, const IoInfo& input) {
  const SequenceSignature& list = signature.list;
  if (list.kind != SequenceSignature::Kind::kAlike) return {without_element_shapes(input.type), {}};
  plan::InputSpec known{Type::sequence(Type::tensor(input.type.child->element, to_shape(list.dims))), {}};
  known.length = list.length >= 0 ? Dim(list.length) : Dim::symbol(input.name + ".length");
  return known;
}

}  // namespace

bool InputSignature::accepts(const AnyValue& value) const {
  if (value.kind() != kind) return false;
  if (kind == AnyValue::Kind::kSequence) return list.accepts(value.sequence());
  if (kind != AnyValue::Kind::kTensor) return true;
  const Tensor& t = value.tensor();
  if (t.type() != element || !fits(dims, t.dims()) || (constant && t.raw() != constant)) return false;
  return !contents_fixed ||
         (t.byte_size() == contents.size() && std::memcmp(t.raw(), contents.data(), contents.size()) == 0);
}

void InputSignature::widen(const InputSignature& before) {
  if (kind == AnyValue::Kind::kSequence) list.widen(before.list);
  if (kind != AnyValue::Kind::kTensor || before.kind != kind || before.dims.size() != dims.size()) return;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (before.dims[d] != dims[d]) dims[d] = -1;
  }
}

bool InputSignature::is_open() const {
  if (kind == AnyValue::Kind::kSequence) return list.is_open();
  return kind == AnyValue::Kind::kTensor && std::any_of(dims.begin(), dims.end(), [](int64_t n) { return n < 0; });
}

void InputSignature::narrow(const AnyValue& value) {
  if (kind == AnyValue::Kind::kTensor) dims = value.tensor().dims();
  if (kind == AnyValue::Kind::kSequence && list.is_open()) list = SequenceSignature::of(value.sequence(), list.element);
}

bool Signature::is_open() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const InputSignature& in) { return in.is_open(); });
}

Signature Signature::narrowed(Values values) const {
  Signature narrow = *this;
  for (size_t i = 0; i < inputs.size(); ++i) narrow.inputs[i].narrow(*values[i]);
  return narrow;
}

uint64_t Signature::number_of_sizes(Values values) const {
  uint64_t number = process_seed();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_open()) continue;
    if (inputs[i].kind == AnyValue::Kind::kTensor) {
      number = number_of(values[i]->tensor().dims(), number);
    } else {
      const SequenceSignature list = SequenceSignature::of(values[i]->sequence(), inputs[i].element);
      const int64_t known[] = {static_cast<int64_t>(list.kind), list.length};
      number = number_of(list.dims, number_of(known, number));
    }
  }
  return number;
}

bool Signature::accepts(Values values) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].accepts(*values[i])) return false;
  }
  return true;
}

Result<std::vector<plan::InputSpec>> knowledge_of(Signature& signature, const Inputs& inputs, Values values) {
  std::vector<plan::InputSpec> knowledge;
  for (size_t i = 0; i < values.size(); ++i) {
    InputSignature& in = signature.inputs[i];
    if (in.kind != AnyValue::Kind::kTensor) {
      knowledge.push_back(knowledge_of_other(in, inputs[i]));
      continue;
    }
    plan::InputSpec& known =
        knowledge.emplace_back(plan::InputSpec{Type::tensor(in.element, shape_of(in.dims, inputs[i])), {}});
    const Tensor& tensor = values[i]->tensor();
    if (in.contents_fixed) {
      TREADLE_ASSIGN(known.contents, tensor.clone());
    } else if (inputs[i].has_default && tensor.raw() == inputs.default_of(i).tensor().raw()) {
      known.contents = tensor;
      in.constant = tensor.raw();
    }
  }
  return knowledge;
}

std::vector<plan::InputSpec> knowledge_of_model(const Inputs& inputs) {
  std::vector<plan::InputSpec> knowledge;
  for (const Type& type : inputs.types()) {
    knowledge.push_back({type.kind == Type::Kind::kTensor ? type : without_element_shapes(type), {}});
  }
  return knowledge;
}

}  // namespace treadle::session
