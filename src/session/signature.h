#pragma once
// The runs that a plan serves: element types and presence of inputs, sizes, and contents of small integer inputs that
// decide a branch or a shape.

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
  const void* constant = nullptr;  // a default that is a constant of the plan; the input must have this value
  SequenceSignature list;

  bool accepts(const AnyValue& value) const;
  // Whether a size is open that a plan for one run alone would know.
  bool is_open() const;
  // Accepts only the sizes of `value` from now on; `value` must be accepted.
  void narrow(const AnyValue& value);
  // Accepts any size in which `before`, of the same kind and rank, differs.
  void widen(const InputSignature& before);
};

struct Signature {
  std::vector<InputSignature> inputs;

  bool accepts(Values values) const;
  bool is_open() const;
  // A signature that accepts only the sizes of `values`.
  Signature narrowed(Values values) const;
  // A hash of the sizes of `values` that this leaves open. It differs from process to process, so that no caller can
  // choose sizes with equal hashes.
  uint64_t number_of_sizes(Values values) const;
};

// The knowledge of a plan for runs of `signature` about the model's inputs. `values`: those of one such run; the plan
// may keep their tensors. Makes the signature require a default that becomes a constant of the plan. Errors: kLimit if
// there is no memory for contents.
Result<std::vector<plan::InputSpec>> knowledge_of(Signature& signature, const Inputs& inputs, Values values);
// The knowledge about any run: the types that the model declares.
std::vector<plan::InputSpec> knowledge_of_model(const Inputs& inputs);

}  // namespace treadle::session
