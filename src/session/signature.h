#pragma once
// What runs a plan serves: element types and presence of inputs, sizes, and the contents of small integer inputs that
// decide something (a branch, a shape).

#include <cstddef>
#include <vector>

#include "plan/specialize.h"
#include "session/inputs.h"
#include "session/sequence_signature.h"

namespace treadle::session {

struct InputSignature {
  AnyValue::Kind kind = AnyValue::Kind::kNone;
  ElementType element = ElementType::kUndefined;
  Dims dims;  // -1: any size
  bool contents_fixed = false;
  std::vector<std::byte> contents;
  const void* constant = nullptr;  // the default that the plan has taken in; no other value will do
  SequenceSignature list;

  bool accepts(const AnyValue& value) const;
  // Whether it leaves a size open that a plan for one run alone would know.
  bool is_open() const;
  // Takes the sizes of `value`, which it accepts, and no others.
  void narrow(const AnyValue& value);
  // Any size where that of another plan's input, of the same kind and rank, differs.
  void widen(const InputSignature& before);
};

struct Signature {
  std::vector<InputSignature> inputs;

  bool accepts(Values values) const;
  bool is_open() const;
  // What accepts the sizes of `values` only, out of all that this accepts.
  Signature narrowed(Values values) const;
  // A number that stands for the sizes of `values` where this leaves sizes open. It differs from process to process, so
  // that nobody can choose sizes of equal numbers.
  uint64_t number_of_sizes(Values values) const;
};

// What a plan for runs of `signature` knows of the model's inputs. `values`: one such run, whose tensors it may keep.
// Makes the signature ask for a default that the plan takes in. Errors: kLimit where contents find no memory.
Result<std::vector<plan::InputSpec>> knowledge_of(Signature& signature, const Inputs& inputs, Values values);
// What is known of any run: the types that the model declares.
std::vector<plan::InputSpec> knowledge_of_model(const Inputs& inputs);

}  // namespace treadle::session
